// The data that `xccl-synth compare --html` writes into the page of engines or machines (pipeline/view/comparison_page.cc). Times are
// picoseconds, sizes bytes, bandwidths bytes per second.
import type { DrawingData, TopologyData } from "../view/data";

interface Compared {
  format: 1;
  version: string; // "0.1.0 (commit 0123456789ab)", the latter where the build is stamped
  command: string;
  collective: string;
  model: string; // pipelined or blocking
  groups: { name: string; label: string }[]; // groups that have engines
  engines: EngineData[]; // auto, then measured lines, then engines that lead, the rest of the front, all other engines
  left_out: string[]; // "ring: reason"
  notes: string[]; // notes on measured lines and on machines
}
export interface MachineData {
  ranks: number; // that take part
  machine: string; // source of the model that programs run on; empty: schedules on ideal links
  topology: TopologyData;
  drawing: DrawingData;
}
// One machine, or several of which each line has one.
export type ComparisonData = Compared & (MachineData | { machines: NamedMachine[] });
export type NamedMachine = MachineData & { name: string };

// Entry i of every list belongs together; sizes ascend.
export interface EngineData {
  name: string;
  group: string;
  leads: boolean; // on the front, and the fastest at some size
  on_front: boolean; // no other engine is at least as fast at all sizes; never auto, never measured
  topology?: string; // name of the machine, where there are several
  measured: boolean; // on a real machine; else simulated
  size_bytes: number[];
  time_ps: number[];
  bound_ps: number[];
  busbw: number[];
  made_by: string[]; // the engine whose plan it is
  messages: (number | null)[]; // messages of the schedule
  threadblocks: (number | null)[]; // the most threadblocks of the program on one rank; null: schedules have none
}
