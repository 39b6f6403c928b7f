// A plan as the page asks about it: what is on a link, and who holds what, at a time.
import type { CriticalData, PlanData, ScheduleData } from "./data";

export type Follow =
  | { kind: "none" }
  | { kind: "rank"; rank: number }
  | { kind: "item"; item: number } // an item of the drawing: ranks folded into one
  | { kind: "chunk"; chunk: number }
  | { kind: "link"; link: number }
  | { kind: "critical" };

const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const valueOfDigit = new Int8Array(128).fill(0);
for (let i = 0; i < digits.length; i++) valueOfDigit[digits.charCodeAt(i)] = i;

export const asList = (value: number | number[]): number[] => (typeof value === "number" ? [value] : value);

// First index whose value is above `at` in an ascending list.
export function after(list: ArrayLike<number>, at: number): number {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle]! <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

export class Model {
  readonly played: ScheduleData; // what the page plays: the program where it can, else the schedule
  readonly playsProgram: boolean;
  readonly end: number; // end of the time that the page plays
  readonly numRanks: number;
  readonly numLinks: number;
  readonly nodeOfRank: number[] = [];
  readonly rankOfNode: Int32Array; // -1: no gpu
  readonly linksOfRank: number[][]; // links that leave or enter each rank
  readonly ranksOfItem: number[][]; // ranks in each item of the drawing
  readonly itemOfNode: Int32Array;
  readonly usedLinks: number[]; // links that carry data, busiest first
  readonly moments: Float64Array; // where something ends: the stops of stepping
  readonly holdings: Holdings;
  readonly maxBandwidth: number;
  readonly critical: CriticalData; // critical path of what is played; empty where it is not known
  readonly criticalLinks = new Map<number, number>(); // link -> picoseconds of that path
  readonly criticalRanks = new Set<number>(); // ranks of its threadblocks
  // With detail: hops of link l, by start: hopsOfLink[hopFirst[l] .. hopFirst[l + 1]).
  readonly hopFirst: Int32Array;
  readonly hopsOfLink: Int32Array;
  readonly messageOfHop: Int32Array;
  // With detail: the time that link l has been busy, piecewise linear: at kneeTime[i] it is kneeBusy[i], for i from
  // kneeFirst[l] up to kneeFirst[l + 1].
  private readonly kneeFirst: Int32Array;
  private readonly kneeTime: Float64Array;
  private readonly kneeBusy: Float64Array;

  constructor(readonly data: PlanData) {
    const { topology, drawing } = data;
    this.playsProgram = data.played !== null;
    this.played = data.played ?? data.schedule;
    const schedule = this.played;
    this.critical = (this.playsProgram ? data.program_critical : data.critical) ?? { kind: "", start: [], end: [], link: [], message: [], rank: [], block: [], stretched: false };
    this.end = Math.max(schedule.time_ps, 1);
    this.numLinks = topology.links.from.length;
    const nodes = topology.nodes.kind.length;
    this.rankOfNode = new Int32Array(nodes).fill(-1);
    for (let node = 0; node < nodes; node++)
      if (topology.nodes.kind[node] === "g") this.rankOfNode[node] = this.nodeOfRank.push(node) - 1;
    this.numRanks = this.nodeOfRank.length;
    this.linksOfRank = Array.from({ length: this.numRanks }, () => []);
    for (let l = 0; l < this.numLinks; l++)
      for (const node of [topology.links.from[l]!, topology.links.to[l]!])
        if (this.rankOfNode[node]! >= 0) this.linksOfRank[this.rankOfNode[node]!]!.push(l);
    this.itemOfNode = new Int32Array(nodes);
    const { items } = drawing;
    this.ranksOfItem = [...items.kind].map((_, i) => {
      const members = items.node.slice(items.node_first[i], items.node_first[i + 1]);
      for (const node of members) this.itemOfNode[node] = i;
      return members.map((node) => this.rankOfNode[node]!).filter((rank) => rank >= 0);
    });
    this.maxBandwidth = topology.links.bandwidth.reduce((a, b) => Math.max(a, b), 1);
    this.usedLinks = [...schedule.links.bytes.keys()]
      .filter((l) => schedule.links.messages[l]! > 0)
      .sort((a, b) => schedule.links.busy_ps[b]! - schedule.links.busy_ps[a]! || a - b);
    this.critical.link.forEach((link, i) => {
      if (link >= 0) this.criticalLinks.set(link, (this.criticalLinks.get(link) ?? 0) + this.critical.end[i]! - this.critical.start[i]!);
    });
    for (const rank of this.critical.rank) if (rank >= 0) this.criticalRanks.add(rank);

    const detail = schedule.detail;
    const hops = detail?.hop_link.length ?? 0;
    this.hopFirst = new Int32Array(this.numLinks + 1);
    this.hopsOfLink = new Int32Array(hops);
    this.messageOfHop = new Int32Array(hops);
    this.kneeFirst = new Int32Array(this.numLinks + 1);
    this.kneeTime = new Float64Array(2 * hops);
    this.kneeBusy = new Float64Array(2 * hops);
    if (detail) {
      this.sortHops();
      for (let l = 0; l < this.numLinks; l++) this.addUpBusy(l);
    }
    this.moments = this.findMoments();
    this.holdings = detail ? new ExactHoldings(this) : new BinnedHoldings(this);
  }

  private sortHops() {
    const detail = this.played.detail!;
    for (let m = 0; m + 1 < detail.hop_first.length; m++)
      this.messageOfHop.fill(m, detail.hop_first[m]!, detail.hop_first[m + 1]!);
    for (const link of detail.hop_link) this.hopFirst[link + 1]!++;
    for (let l = 0; l < this.numLinks; l++) this.hopFirst[l + 1]! += this.hopFirst[l]!;
    const next = this.hopFirst.slice();
    const order = [...detail.hop_link.keys()].sort((a, b) => detail.hop_start[a]! - detail.hop_start[b]! || a - b);
    for (const hop of order) this.hopsOfLink[next[detail.hop_link[hop]!]!++] = hop;
  }

  // While a message is on a link it is busy at a constant share of the time, as far as the page knows.
  private addUpBusy(link: number) {
    const detail = this.played.detail!;
    const first = this.hopFirst[link]!, hops = this.hopFirst[link + 1]! - first;
    const times = new Float64Array(2 * hops), slopes = new Float64Array(2 * hops);
    for (let i = 0; i < hops; i++) {
      const hop = this.hopsOfLink[first + i]!;
      const start = detail.hop_start[hop]!, end = Math.max(detail.hop_end[hop]!, start + 1);
      times[2 * i] = start;
      times[2 * i + 1] = end;
      slopes[2 * i] = detail.hop_busy[hop]! / (end - start);
      slopes[2 * i + 1] = -slopes[2 * i]!;
    }
    const order = [...times.keys()].sort((a, b) => times[a]! - times[b]!);
    let slope = 0, busy = 0, before = 0;
    order.forEach((knee, i) => {
      busy += slope * (times[knee]! - before);
      before = times[knee]!;
      slope += slopes[knee]!;
      this.kneeTime[2 * first + i] = before;
      this.kneeBusy[2 * first + i] = busy;
    });
    this.kneeFirst[link] = 2 * first;
    this.kneeFirst[link + 1] = 2 * (first + hops);
  }

  private busyUntil(link: number, at: number): number {
    const first = this.kneeFirst[link]!, last = this.kneeFirst[link + 1]!;
    const i = first + after(this.kneeTime.subarray(first, last), at);
    if (i === first) return 0;
    if (i === last) return this.kneeBusy[last - 1]!;
    const share = (at - this.kneeTime[i - 1]!) / (this.kneeTime[i]! - this.kneeTime[i - 1]!);
    return this.kneeBusy[i - 1]! + share * (this.kneeBusy[i]! - this.kneeBusy[i - 1]!);
  }

  private findMoments(): Float64Array {
    const { detail, binned } = this.data.schedule;
    const times = new Set<number>([0, this.end]);
    if (detail) for (const end of detail.end) times.add(end);
    else if (binned) for (let i = 1; i < binned.bins; i++) times.add((i * this.end) / binned.bins);
    return Float64Array.from(times).sort();
  }

  // The moment after (direction 1) or before (direction -1) a time.
  moment(at: number, direction: 1 | -1): number {
    const next = after(this.moments, at);
    if (direction > 0) return this.moments[Math.min(next, this.moments.length - 1)]!;
    let i = next - 1;
    while (i > 0 && this.moments[i]! >= at) i--;
    return this.moments[Math.max(i, 0)]!;
  }

  // Share of the time between two times that a link is busy.
  load(link: number, from: number, to: number): number {
    if (to <= from) return 0;
    if (this.played.binned) return this.binnedLoad(link, from, to);
    return Math.min(1, (this.busyUntil(link, to) - this.busyUntil(link, from)) / (to - from));
  }

  private binnedLoad(link: number, from: number, to: number): number {
    const { bins, loads: all } = this.played.binned!;
    const loads = all[link];
    if (!loads) return 0;
    const width = this.end / bins;
    const first = Math.max(0, Math.floor(from / width)), last = Math.min(bins - 1, Math.ceil(to / width) - 1);
    let sum = 0;
    for (let i = first; i <= last; i++) {
      const share = Math.min(to, (i + 1) * width) - Math.max(from, i * width);
      sum += (valueOfDigit[loads.charCodeAt(i)]! / 63) * share;
    }
    return sum / (to - from);
  }

  // The load that the drawing shows for a link at a time: the mean over a short while around that time.
  loadNow(link: number, at: number): number {
    if (at >= this.end) return 0; // all has arrived
    const half = this.end / (2 * (this.played.binned?.bins ?? 150));
    return this.load(link, Math.max(0, at - half), Math.min(this.end, at + half));
  }
  loadTotal(link: number): number {
    return Math.min(1, this.played.links.busy_ps[link]! / this.end);
  }

  // "h0/gpu 3": the host only where there are several.
  nodeName(node: number): string {
    const { nodes, hosts } = this.data.topology;
    const host = nodes.host[node]!;
    const name = nodes.kind[node] === "g" ? `gpu ${nodes.id[node]}` : nodes.id[node]!;
    return hosts.length > 1 && host >= 0 ? `${hosts[host]}/${name}` : name;
  }
  // "32 GPUs of h4": an item of the drawing.
  itemName(item: number): string {
    const { items } = this.data.drawing;
    const first = items.node_first[item]!;
    if (items.node_first[item + 1]! - first === 1) return this.nodeName(items.node[first]!);
    return items.lines[item]!.replaceAll("\n", ", ");
  }
  linkName(link: number): string {
    const { from, to } = this.data.topology.links;
    return `${this.nodeName(from[link]!)} \u2192 ${this.nodeName(to[link]!)}`;
  }
  rankName(rank: number): string {
    const { nodes, hosts } = this.data.topology;
    const host = nodes.host[this.nodeOfRank[rank]!]!;
    return hosts.length > 1 && hosts.length < this.numRanks && host >= 0 ? `rank ${rank} (${hosts[host]})` : `rank ${rank}`;
  }
  // The links and messages that belong to what is followed; null where nothing is.
  followed(follow: Follow): { links: Set<number>; messages: Set<number> | null } | null {
    switch (follow.kind) {
      case "none": return null;
      case "critical": {
        return { links: new Set(this.criticalLinks.keys()), messages: this.played.detail ? this.criticalMessages() : null };
      }
      case "link": return { links: new Set([follow.link]), messages: this.messagesWhere((_, links) => links.includes(follow.link)) };
      case "rank": return this.ofRanks(new Set([follow.rank]));
      case "item": {
        const ranks = new Set(this.ranksOfItem[follow.item]);
        if (ranks.size > 0) return this.ofRanks(ranks);
        const links = new Set(this.usedLinks.filter((link) => this.touches(link, follow.item)));
        return { links, messages: this.messagesWhere((_, path) => path.some((link) => links.has(link))) };
      }
      case "chunk": {
        const messages = this.messagesWhere((m) => this.carries(m, follow.chunk));
        return { links: messages ? this.linksOf(messages) : this.linksOfTree(follow.chunk), messages };
      }
    }
  }

  // A program's path names links and times: its messages are those that are on the link then.
  private criticalMessages(): Set<number> {
    const { message, link, start, end } = this.critical;
    const found = new Set(message.filter((m) => m >= 0));
    if (!this.playsProgram) return found;
    const detail = this.played.detail!;
    link.forEach((l, i) => {
      if (l < 0) return;
      let best = -1, most = 0;
      for (let k = this.hopFirst[l]!; k < this.hopFirst[l + 1]!; k++) {
        const hop = this.hopsOfLink[k]!;
        const common = Math.min(detail.hop_end[hop]!, end[i]!) - Math.max(detail.hop_start[hop]!, start[i]!);
        if (common > most) [best, most] = [hop, common];
      }
      if (best >= 0) found.add(this.messageOfHop[best]!);
    });
    return found;
  }

  private messagesWhere(wanted: (message: number, links: number[]) => boolean): Set<number> | null {
    const detail = this.played.detail;
    if (!detail) return null;
    const found = new Set<number>();
    for (let m = 0; m < detail.src.length; m++)
      if (wanted(m, detail.hop_link.slice(detail.hop_first[m], detail.hop_first[m + 1]))) found.add(m);
    return found;
  }
  private touches(link: number, item: number): boolean {
    const { from, to } = this.data.topology.links;
    return this.itemOfNode[from[link]!] === item || this.itemOfNode[to[link]!] === item;
  }
  // The messages that leave or reach these ranks, and their links; without details, all links of the ranks.
  private ofRanks(ranks: Set<number>) {
    const messages = this.messagesWhere((m) => {
      const detail = this.played.detail!;
      return [...asList(detail.src[m]!), ...asList(detail.dst[m]!)].some((rank) => ranks.has(rank));
    });
    const links = messages ? this.linksOf(messages) : new Set([...ranks].flatMap((rank) => this.linksOfRank[rank]!));
    return { links, messages };
  }
  carries(message: number, chunk: number): boolean {
    const detail = this.played.detail!;
    for (let t = detail.transfer_first[message]!; t < detail.transfer_first[message + 1]!; t++)
      if (chunk >= detail.chunk[t]! && chunk < detail.chunk[t]! + detail.count[t]!) return true;
    return false;
  }
  private linksOf(messages: Set<number>): Set<number> {
    const detail = this.played.detail!;
    const links = new Set<number>();
    for (const m of messages)
      for (let h = detail.hop_first[m]!; h < detail.hop_first[m + 1]!; h++) links.add(detail.hop_link[h]!);
    return links;
  }
  private linksOfTree(chunk: number): Set<number> {
    const binned = this.played.binned;
    const i = binned ? binned.chunk.indexOf(chunk) : -1;
    return new Set(i < 0 ? [] : binned!.link.slice(binned!.link_first[i], binned!.link_first[i + 1]));
  }
  // Ranks that hold something of a followed chunk at a time.
  holders(chunk: number, at: number): Set<number> {
    const found = new Set<number>();
    if (this.holdings instanceof ExactHoldings) {
      this.holdings.seek(at);
      for (let r = 0; r < this.numRanks; r++) if (this.holdings.have(r, chunk) > 0) found.add(r);
      return found;
    }
    const binned = this.played.binned;
    const i = binned ? binned.chunk.indexOf(chunk) : -1;
    if (i < 0) return found;
    for (let k = binned!.arrival_first[i]!; k < binned!.arrival_first[i + 1]!; k++)
      if (binned!.arrival_ps[k]! <= at) found.add(binned!.arrival_rank[k]!);
    return found;
  }
  // Chunks that can be followed.
  followableChunks(): number[] {
    if (this.played.detail) return [...Array(this.played.chunks).keys()];
    return this.played.binned?.chunk ?? [];
  }
}

// Who holds what at a time. Rows are ranks or groups of them, columns chunks or groups of them.
export interface Holdings {
  readonly rows: number;
  readonly columns: number;
  seek(at: number): void; // everything below is at this time
  // 0: nothing; 1: all that is needed in the end; -1: holds something that it does not need (a relay, an input).
  share(row: number, column: number): number;
  ofRank(rank: number): number; // share of what the rank needs, 0..1; -1 where it needs nothing
  describe(row: number, column: number): string;
  rowName(row: number): string;
  columnName(column: number): string;
  rowOfRank(rank: number): number;
  columnOfChunk(chunk: number): number;
}

class ExactHoldings implements Holdings {
  readonly rows: number;
  readonly columns: number;
  private readonly initial: Int32Array;
  private readonly needed: Int32Array;
  private readonly now: Float64Array;
  private readonly done: Float64Array; // by rank: sum over its needed cells
  private readonly wants: Int32Array; // by rank: needed cells
  // Writes in order of arrival.
  private readonly at: Float64Array;
  private readonly cell: Int32Array;
  private readonly value: Float64Array;
  private readonly adds: Uint8Array;
  private position = 0;

  constructor(model: Model) {
    const detail = model.played.detail!;
    this.rows = model.numRanks;
    this.columns = model.played.chunks;
    const cells = this.rows * this.columns;
    this.initial = new Int32Array(cells);
    this.needed = new Int32Array(cells);
    this.done = new Float64Array(this.rows);
    this.wants = new Int32Array(this.rows);
    const { before, needs } = detail;
    for (const [columns, cells] of [[before, this.initial], [needs, this.needed]] as const)
      columns.rank.forEach((rank, i) => {
        const first = rank * this.columns + columns.chunk[i]!;
        cells.fill(columns.contributions[i]!, first, first + columns.count[i]!);
      });
    needs.rank.forEach((rank, i) => (this.wants[rank]! += needs.count[i]!));
    const writes = detail.writes ? this.writesOfProgram(detail.writes) : this.writesInOrderOfSteps(model);
    const order = [...writes.at.keys()].sort((a, b) => writes.at[a]! - writes.at[b]! || a - b);
    this.at = Float64Array.from(order, (i) => writes.at[i]!);
    this.cell = Int32Array.from(order, (i) => writes.cell[i]!);
    this.value = Float64Array.from(order, (i) => writes.value[i]!);
    this.adds = Uint8Array.from(order, (i) => writes.adds[i]!);
    this.now = Float64Array.from(this.initial);
    this.restart();
  }

  private writesOfProgram({ rank, chunk, start, end, gain, parts }: NonNullable<NonNullable<ScheduleData["detail"]>["writes"]>) {
    const writes = { at: [] as number[], cell: [] as number[], value: [] as number[], adds: [] as number[] };
    rank.forEach((r, i) => {
      for (let part = 1; part <= parts; part++) {
        writes.at.push(start[i]! + ((end[i]! - start[i]!) * part) / parts);
        writes.cell.push(r * this.columns + chunk[i]!);
        writes.value.push(gain[i]! / parts);
        writes.adds.push(1);
      }
    });
    return writes;
  }

  // A transfer carries what its sources held before its step: the number of contributions is enough, since nothing
  // is added twice.
  private writesInOrderOfSteps(model: Model) {
    const detail = model.played.detail!;
    const writes = { at: [] as number[], cell: [] as number[], value: [] as number[], adds: [] as number[] };
    const state = this.initial.slice();
    let done = 0; // writes that are in `state`
    const settle = () => {
      for (; done < writes.cell.length; done++) {
        const cell = writes.cell[done]!;
        state[cell] = (writes.adds[done] ? state[cell]! : 0) + writes.value[done]!;
      }
    };
    for (let m = 0; m < detail.src.length; m++) {
      if (m > 0 && detail.step![m] !== detail.step![m - 1]) settle();
      const sources = asList(detail.src[m]!), destinations = asList(detail.dst[m]!);
      for (let t = detail.transfer_first[m]!; t < detail.transfer_first[m + 1]!; t++) {
        for (let c = detail.chunk[t]!; c < detail.chunk[t]! + detail.count[t]!; c++) {
          const value = sources.reduce((sum, rank) => sum + state[rank * this.columns + c]!, 0);
          for (const rank of destinations) {
            writes.at.push(detail.arrival[t]!);
            writes.cell.push(rank * this.columns + c);
            writes.value.push(value);
            writes.adds.push(detail.op[t] === "r" ? 1 : 0);
          }
        }
      }
    }
    return writes;
  }

  private restart() {
    this.now.set(this.initial);
    this.position = 0;
    this.done.fill(0);
    for (let cell = 0; cell < this.now.length; cell++)
      if (this.needed[cell]) this.done[Math.floor(cell / this.columns)]! += this.shareOf(cell);
  }
  private shareOf(cell: number): number {
    const needed = this.needed[cell]!;
    return needed === 0 ? (this.now[cell]! > 0 ? -1 : 0) : Math.min(1, this.now[cell]! / needed);
  }
  seek(at: number) {
    if (this.position > 0 && this.at[this.position - 1]! > at) this.restart();
    for (; this.position < this.at.length && this.at[this.position]! <= at; this.position++) {
      const cell = this.cell[this.position]!;
      const rank = Math.floor(cell / this.columns);
      const before = this.needed[cell] ? this.shareOf(cell) : 0;
      this.now[cell] = (this.adds[this.position] ? this.now[cell]! : 0) + this.value[this.position]!;
      if (this.needed[cell]) this.done[rank]! += this.shareOf(cell) - before;
    }
  }
  have(rank: number, chunk: number): number {
    return this.now[rank * this.columns + chunk]!;
  }
  share(row: number, column: number): number {
    return this.shareOf(row * this.columns + column);
  }
  ofRank(rank: number): number {
    return this.wants[rank] ? Math.min(1, this.done[rank]! / this.wants[rank]!) : -1;
  }
  describe(row: number, column: number): string {
    const cell = row * this.columns + column;
    const have = this.now[cell]!, need = this.needed[cell]!;
    if (!Number.isInteger(have) && need > 0) return `${Math.round((100 * have) / need)} % of ${need === 1 ? "it is there" : `${need} contributions`}`;
    if (need === 0) return have > 0 ? `holds ${Math.ceil(have)} contribution${have > 1 ? "s" : ""}, needs none` : "needs none";
    if (need === 1) return have > 0 ? "is there" : "not there yet";
    return `${have} of ${need} contributions`;
  }
  rowName(row: number): string {
    return `rank ${row}`;
  }
  columnName(column: number): string {
    return `chunk ${column}`;
  }
  rowOfRank(rank: number): number {
    return rank;
  }
  columnOfChunk(chunk: number): number {
    return chunk;
  }
}

// Frames of shares, one for the end of each of some equal parts of the time.
class BinnedHoldings implements Holdings {
  readonly rows: number;
  readonly columns: number;
  private frame = -1; // -1: the beginning

  constructor(private readonly model: Model) {
    this.rows = this.data?.rows.length ?? 0;
    this.columns = this.data?.columns.length ?? 0;
  }
  private get data() {
    return this.model.played.binned;
  }
  seek(at: number) {
    const frames = this.data?.frames.length ?? 0;
    this.frame = Math.min(frames - 1, Math.floor((at / this.model.end) * frames + 1e-9));
  }
  private digit(frames: string[], i: number): number {
    return this.frame < 0 ? 0 : valueOfDigit[frames[this.frame]!.charCodeAt(i)]! / 63;
  }
  share(row: number, column: number): number {
    return this.digit(this.data!.frames, row * this.columns + column);
  }
  ofRank(rank: number): number {
    return this.data?.needs[rank] === "n" ? this.digit(this.data.ranks, rank) : -1;
  }
  describe(row: number, column: number): string {
    return `${Math.round(100 * this.share(row, column))} % of what is needed`;
  }
  rowName(row: number): string {
    return this.data!.rows[row]!;
  }
  columnName(column: number): string {
    return this.data!.columns[column]!;
  }
  rowOfRank(rank: number): number {
    return this.data?.row_of_rank[rank] ?? -1;
  }
  columnOfChunk(chunk: number): number {
    return this.columns ? Math.floor((chunk * this.columns) / this.model.played.chunks) : -1;
  }
}
