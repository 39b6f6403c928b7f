// The data that `xccl-synth compare --failures N --html` writes into the page (pipeline/view/failures_page.cc). Times are
// microseconds on ideal links, sizes bytes.
import type { DrawingData, TopologyData } from "../view/data";

export interface FailuresData {
  format: 1;
  version: string;
  command: string;
  title: string;
  collective: string;
  model: string;
  failed: string[]; // by draw: "0<->1, 2<->3"
  times: TimesData[]; // by size, then by mean time
  bounds: BoundsData[]; // by size
  left_out: string[]; // "ring: reason"
  topology: TopologyData; // the whole machine
  drawing: DrawingData;
}

// One engine at one size. null: no plan.
export interface TimesData {
  engine: string;
  size_bytes: number;
  whole_us: number | null;
  draw_us: (number | null)[]; // by draw
}

// Lower bounds at one size.
export interface BoundsData {
  size_bytes: number;
  whole_us: number;
  draw_us: number[];
}
