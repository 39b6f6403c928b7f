// The data that `xccl-synth view` writes into the page (pipeline/view). It has columns, not objects: the entries i of all
// lists of a group belong together. Times are picoseconds, sizes bytes, bandwidths bytes per second; ids count from 0. A
// list of lists is flat: entry i holds items X_first[i] up to X_first[i + 1]. Kinds are one letter each, in one string.

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
  serves: string; // the sizes that a book says it is for; empty for a single plan
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
  drawing: DrawingData;
  collective: CollectiveData;
  made_by: MadeBy;
  facts: Facts;
  schedule: ScheduleData; // only its totals where `played` is there
  played: ScheduleData | null; // the run of the program, which the page plays; null: it plays the schedule
  critical: CriticalData | null; // critical path of the schedule
  program_critical: CriticalData | null;
  program: ProgramData | null;
  program_note: string; // why there is none though the plan has a program; empty otherwise
}

export interface TopologyData {
  name: string;
  source: string;
  hosts: string[];
  nodes: {
    kind: string; // g gpu, s switch, n nic, c cpu
    id: string[]; // "3", "nvswitch"; unique in its host and kind
    host: number[]; // -1: in none
    can: string; // m multicasts, r reduces, b both, - neither
  }; // ranks are the GPUs in order
  links: { from: number[]; to: number[]; bandwidth: number[]; latency: number[]; overhead: number[] };
}

// draw/layout/layout.h. Lengths are pixels at scale 1, x to the right and y down.
export interface DrawingData {
  shape: string; // "torus 4x4"
  width: number;
  height: number;
  // Rectangles: nodes, or several folded into one. x and y are of the centre.
  items: { kind: string; x: number[]; y: number[]; width: number[]; height: number[]; lines: string[]; node_first: number[]; node: number[] };
  // A label's left end and middle height.
  frames: { label: string[]; label_x: number[]; label_y: number[]; left: number[]; top: number[]; width: number[]; height: number[] };
  // Between two items. Forms: l a line from point to point, c a curve to the middle of three points, s two stubs,
  // points 0 to 1 and 3 to 2. `point` alternates x and y; point_first counts numbers.
  cables: { a: number[]; b: number[]; form: string; link_first: number[]; link: number[]; point_first: number[]; point: number[] };
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
  machine: string; // known machine that the program is for; empty: none
  model: string; // pipelined or blocking
}

export interface Facts {
  size_bytes: number;
  time_ps: number; // time of the schedule, on links alone
  program_time_ps: number | null; // time of the program, on the machine of machine_source, or on links alone
  machine_source: string;
  no_machine: string; // why there is no model of the machine; empty: there is one, or links alone were asked for
  bound_ps: number;
  bound_kind: string;
  latency_ps: number; // latency bound
  bandwidth_ps: number; // bandwidth bound
  bus_factor: number; // busbw = size / time * this
  meets_bound: boolean; // the schedule does
  bitwise_same: boolean | null;
  steps: number;
  transfers: number;
  messages: number;
}

// The simulated schedule, or the simulated program.
export interface ScheduleData {
  time_ps: number; // the last arrival
  chunks: number; // of the collective: those of a program are some of a schedule's together
  notes: string[]; // what was left out or added up, in sentences
  // By link, over the whole run.
  links: { bytes: number[]; busy_ps: number[]; messages: number[] };
  detail: ScheduleDetail | null; // every message, where there are not too many
  binned: BinnedSchedule | null; // else: loads and holdings over time
}

export interface ScheduleDetail {
  // Messages: a schedule's by step, a program's by sender.
  src: (number | number[])[]; // ranks; a list for an in-switch reduction
  dst: (number | number[])[]; // a list for a multicast
  step: number[] | null; // null: a program's
  bytes: number[];
  start: number[]; // its first byte leaves
  end: number[]; // its last byte has arrived
  // Transfers of message i.
  transfer_first: number[];
  chunk: number[]; // the first
  count: number[]; // how many
  op: string; // c copies, r reduces
  arrival: number[]; // when its last chunk arrives
  // Links of message i, and when it is on them.
  hop_first: number[];
  hop_link: number[];
  hop_start: number[];
  hop_end: number[]; // the link is done with its last byte, which arrives a latency later
  hop_busy: number[]; // how long the message occupies the link in between
  before: HoldingColumns; // what ranks hold before, and must hold after
  needs: HoldingColumns;
  // The writes of a program's instructions, by end: in `parts` equal parts from start to end the rank gets `gain` more
  // contributions of the chunk. null: a schedule's, which follow from its transfers.
  writes: { rank: number[]; chunk: number[]; start: number[]; end: number[]; gain: number[]; parts: number } | null;
}

// Rank `rank` holds `contributions` of each of the chunks chunk .. chunk + count - 1.
export interface HoldingColumns {
  rank: number[];
  chunk: number[];
  count: number[];
  contributions: number[];
}

// The run in `bins` equal parts of the time. A digit is one of base 64: 0 is A, 63 is /.
export interface BinnedSchedule {
  bins: number;
  loads: string[]; // by link, a digit a bin: 63 is busy all the time; empty: never
  // Who holds what, over groups of ranks (rows) and of neighbouring chunks (columns).
  frames: string[]; // at the end of each of some equal parts of the time; a digit a cell, 63: all that is needed
  rows: string[]; // "ranks 0 to 21"
  columns: string[];
  row_of_rank: number[];
  ranks: string[]; // at the same times; a digit a rank, 63: it has all that it needs
  needs: string; // a letter a rank: n needs something, - nothing
  // Some chunks to follow: the links that carry chunk[i], and its arrivals.
  chunk: number[];
  link_first: number[];
  link: number[];
  arrival_first: number[];
  arrival_rank: number[];
  arrival_ps: number[];
}

// The chain of events that ends with the last arrival: ascending in time, from 0 to the end, without gaps.
export interface CriticalData {
  // b bytes pass a link, a latency of a link, o overhead of a message, t an instruction holds its threadblock,
  // w hand-off between threadblocks, h hop from arrival to receiver, l launch.
  kind: string;
  start: number[];
  end: number[];
  link: number[]; // -1: none
  message: number[]; // index of a message of `detail`; -1: none
  rank: number[]; // rank of a threadblock; -1: none
  block: number[]; // a threadblock of that rank; -1: none
  stretched: boolean; // a shorter run, stretched to the time
}

export interface ProgramData {
  protocol: string;
  slots: number;
  instances: number;
  passes: number;
  time_ps: number;
  notes: string[];
  ranks: number[]; // ranks whose threadblocks the page has
  block_first: number[]; // threadblocks of ranks[i]
  // By threadblock, in order of their rank's.
  channel: number[];
  send: number[][]; // peers
  recv: number[][];
  send_group: string; // m multicast, - none
  recv_group: string; // r reduction in a switch, f fan-in, - none
  instruction_first: number[];
  // By instruction.
  op: string; // s send, r recv, c recv_copy_send, f recv_reduce_send, p recv_reduce_copy, a recv_reduce_copy_send,
  // k copy, e reduce, n nop
  count: number[]; // chunks
  from_buffer: string; // i input, o output, s scratch, - none
  from: number[]; // slot
  to_buffer: string;
  to: number[];
  dependency_first: number[];
  dependency_block: number[]; // threadblock of the same rank
  dependency_index: number[];
  start: number[]; // when its first pass starts, after its waits
  end: number[]; // when its last pass ends
  busy: number[]; // sum over passes
  // Sums over passes of the waits for another threadblock (hand-off included), a message, a slot, a link.
  wait_block: number[];
  wait_message: number[];
  wait_slot: number[];
  wait_link: number[];
  // Every instruction in every pass, by start; null where there are too many.
  slices: {
    instruction: number[];
    pass: number[];
    reached: number[]; // its threadblock has nothing else to do
    start: number[];
    end: number[];
    waited: string; // the last thing it waited for: b another threadblock, h its hand-off, m a message, s a slot, l a link, - nothing
  } | null;
}
