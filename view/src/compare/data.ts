// What `xccl-synth compare --html` writes into the page; pipeline/view/comparison_page.cc writes it. Times are
// picoseconds, sizes bytes, bandwidths bytes per second.
import type { DrawingData, TopologyData } from "../view/data";

export interface ComparisonData {
  format: 1;
  version: string;
  command: string;
  collective: string;
  ranks: number;
  model: string; // pipelined or blocking
  machine: string; // source of the model that programs run on; empty: schedules on ideal links
  groups: { name: string; label: string }[]; // those that have engines
  engines: EngineData[]; // auto first, then those that lead, the others of the front, the others
  left_out: string[]; // "ring: reason"
  topology: TopologyData;
  drawing: DrawingData;
}

// Entry i of every list belongs together; sizes ascend.
export interface EngineData {
  name: string;
  group: string;
  leads: boolean; // on the front, and the fastest at some size
  on_front: boolean; // no other engine is at least as fast at all sizes; never auto
  size_bytes: number[];
  time_ps: number[];
  bound_ps: number[];
  busbw: number[];
  made_by: string[]; // the engine whose plan it is
}
