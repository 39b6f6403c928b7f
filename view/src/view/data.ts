// What `xccl-synth view` writes into the page; pipeline/view.h has the same in C++. Columns, not objects: entry i of
// every list of a group belongs together. Times are picoseconds, sizes bytes, bandwidths bytes per second; ids count
// from 0. A list of lists is flat: entry i holds items first[i] up to first[i + 1].

// <script id="data">: the list of plans. Plan i is in <script id="plan-i">.
export interface Index {
  format: 1;
  version: string;
  command: string;
  title: string;
  plans: Summary[];
}

export interface Summary {
  name: string; // the file's
  serves: string; // what a book says it is for; empty for a single plan
  collective: string;
  topology: string;
  ranks: number;
  engine: string;
  size_bytes: number;
  time_ps: number; // the program's where there is one, else the schedule's
  bound_ps: number;
}

export interface PlanData {
  topology: TopologyData;
  collective: CollectiveData;
  made_by: MadeBy;
  facts: Facts;
  schedule: ScheduleData;
  critical: CriticalData;
  program: ProgramData | null;
}

export interface TopologyData {
  name: string;
  source: string;
  layout: string; // what the drawing is: "torus 4x4", "hosts in rows under their switches"
  hosts: { name: string[]; x: number[]; y: number[]; width: number[]; height: number[] };
  nodes: {
    kind: string; // a letter each: g gpu, s switch, n nic, c cpu
    name: string[]; // as in references: "h0/gpu:3"
    label: string[]; // short: "3", "nvswitch"
    host: number[]; // -1: in none
    rank: number[]; // -1: not a gpu
    x: number[]; // of the centre; GPUs are 1 unit wide
    y: number[];
    can: string; // a letter each: m multicasts, r reduces, b both, - neither
  };
  links: { from: number[]; to: number[]; bandwidth: number[]; latency: number[]; overhead: number[] };
}

export interface CollectiveData {
  name: string;
  members: number[];
  root: number | null;
  chunks: number;
  parts: number;
  reduces: boolean;
}

export interface MadeBy {
  engine: string;
  seed: number;
  limits: string;
  version: string;
  machine: string; // empty: none
  model: string; // pipelined or blocking
}

export interface Facts {
  size_bytes: number;
  time_ps: number; // of the schedule, on links alone
  program_time_ps: number | null; // of the program, on `machine_source` or on links alone
  machine_source: string;
  bound_ps: number;
  bound_kind: string;
  latency_ps: number; // of the bound
  bandwidth_ps: number; // of the bound
  busbw_factor: number; // busbw = size ÷ time × this
  exact: boolean;
  bitwise_same: boolean | null;
  steps: number;
  transfers: number;
  messages: number;
}

// The simulated schedule.
export interface ScheduleData {
  time_ps: number; // of this simulation: the last arrival
  notes: string[]; // what was left out or added up, in sentences
  // Every message and every link it takes, or null where there are too many.
  detail: ScheduleDetail | null;
  // By link: what it carries over the whole run.
  links: { bytes: number[]; busy_ps: number[]; messages: number[] };
  // Where there is no detail: the load of every link over time, in `count` equal bins.
  bins: { count: number; loads: string[] } | null; // by link, a base-64 digit a bin: 63 is all the time; "" idle
  holdings: HoldingsData | null; // where there is no detail
  trees: TreesData | null; // where there is no detail: some chunks to follow
}

export interface ScheduleDetail {
  // Messages, by step.
  src: (number | number[])[]; // ranks; a list for an in-switch reduction
  dst: (number | number[])[]; // a list for a multicast
  step: number[];
  bytes: number[];
  start: number[]; // its first byte leaves
  end: number[]; // its last byte has arrived
  // Transfers of message i.
  transfer_first: number[]; // messages + 1 entries
  chunk: number[]; // by transfer
  count: number[];
  op: string; // c copies, r reduces
  arrival: number[]; // of its last chunk
  // Links of message i and when it is on them.
  hop_first: number[]; // messages + 1 entries
  hop_link: number[];
  hop_start: number[];
  hop_end: number[]; // the link is done with its last byte, which arrives a latency later
  hop_busy: number[]; // how long the message occupies the link in between
  // Before and after: contributions of (rank, chunk), in rows of `chunks`; flat.
  before: HoldingColumns;
  needs: HoldingColumns;
}

// The (rank, chunk) that hold something, and how many contributions.
export interface HoldingColumns {
  rank: number[];
  chunk: number[];
  count: number[];
}

// Who holds what over time, added up over groups of ranks and of chunks.
export interface HoldingsData {
  rows: string[]; // names of the groups of ranks
  row_of_rank: number[];
  columns: string[]; // names of the groups of chunks
  bins: number;
  // Every change: in bin `bin`, `share` per mille of what the cell needs in the end is there.
  bin: number[];
  row: number[];
  column: number[];
  share: number[];
}

// Chunks that can be followed where there is no detail. Moves of chunks[i] are first[i] up to first[i + 1].
export interface TreesData {
  chunk: number[];
  first: number[];
  link: number[]; // last link of the move
  dst: number[]; // rank
  arrival: number[];
}

// The chain of events that ends with the last arrival: ascending in time, from 0 to the end, without gaps.
export interface CriticalData {
  of: "schedule" | "program";
  // A letter each: b bytes pass a link, a latency of a link, o overhead of a message, t an instruction holds its
  // threadblock, w hand-off between threadblocks, h hop from arrival to receiver, l launch.
  kind: string;
  start: number[];
  end: number[];
  link: number[]; // -1: none
  message: number[]; // of detail; -1: none
  text: string[]; // "threadblock 3 of rank 0"; empty where link and kind say it
  stretched: boolean; // a shorter run, stretched to the time
  words: string[]; // the answer to "why is it not faster", in sentences
}

export interface ProgramData {
  protocol: string;
  slots: number;
  instances: number;
  passes: number;
  time_ps: number;
  notes: string[];
  ranks: number[]; // those that are here
  block_first: number[]; // threadblocks of ranks[i]; ranks + 1 entries
  // By threadblock.
  index: number[]; // within its rank
  channel: number[];
  send: string[]; // "1", "2, 3 by multicast"; empty: none
  recv: string[];
  instruction_first: number[]; // threadblocks + 1 entries
  // By instruction.
  op: string; // a letter each: s send, r recv, c recv_copy_send, f recv_reduce_send, p recv_reduce_copy,
  // a recv_reduce_copy_send, k copy, e reduce, n nop
  count: number[]; // chunks
  from: string[]; // "input 3", empty: unused
  to: string[];
  begin: number[]; // it may start: the one before it is done
  start: number[]; // it starts: what it waits for is there
  end: number[]; // of its last pass
  waits: string[]; // "threadblock 2, instruction 4"; empty: for nothing
  bound_by: string; // a letter each: what it waited for last: d a dependency, m a message, s a slot, - nothing
}
