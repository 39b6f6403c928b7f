// The rows of the timeline, and how each is drawn.
import { category, loadColour } from "../shared/colours";
import type { Palette, Theme } from "../shared/theme";
import { after, asList, type Model } from "./model";

export type By = "link" | "rank";
export type Order = "busy" | "machine" | "first";
export interface Row {
  kind: "critical" | By;
  id: number; // link or rank
  name: string;
}
export interface Strip {
  // Where a row is drawn, and the times at its ends.
  x: number;
  y: number;
  width: number;
  height: number;
  from: number;
  to: number;
}
export interface RowLook {
  palette: Palette;
  theme: Theme;
  followed: { links: Set<number>; messages: Set<number> | null } | null;
}

export const kindColour: Record<string, number> = { b: 0, a: 6, o: 3, t: 1, w: 2, h: 8, l: 7 };

// Messages that leave each rank and that reach it, by start.
export class RankMessages {
  readonly out: number[][];
  readonly into: number[][];
  constructor(model: Model) {
    const detail = model.played.detail;
    this.out = Array.from({ length: model.numRanks }, () => []);
    this.into = Array.from({ length: model.numRanks }, () => []);
    if (!detail) return;
    const order = [...detail.src.keys()].sort((a, b) => detail.start[a]! - detail.start[b]! || a - b);
    for (const m of order) {
      for (const rank of asList(detail.src[m]!)) this.out[rank]!.push(m);
      for (const rank of asList(detail.dst[m]!)) this.into[rank]!.push(m);
    }
  }
}

export function rowsOf(model: Model, by: By, order: Order, filter: string): Row[] {
  const wanted = filter.trim().toLowerCase();
  const rows: Row[] = model.critical.kind ? [{ kind: "critical", id: -1, name: "critical path" }] : [];
  if (by === "link") {
    const links = [...model.usedLinks];
    if (order === "machine") links.sort((a, b) => a - b);
    if (order === "first") {
      const first = (link: number) => firstUse(model, link);
      links.sort((a, b) => first(a) - first(b) || a - b);
    }
    for (const id of links) rows.push({ kind: "link", id, name: model.linkName(id) });
  } else {
    for (let id = 0; id < model.numRanks; id++) rows.push({ kind: "rank", id, name: model.rankName(id) });
  }
  return wanted ? rows.filter((row) => row.kind === "critical" || matches(row, wanted)) : rows;
}

// "3" alone means rank 3; other text is looked for in names.
function matches(row: Row, wanted: string): boolean {
  if (row.kind === "rank" && /^\d+$/.test(wanted)) return row.id === Number(wanted);
  return row.name.toLowerCase().includes(wanted);
}

function firstUse(model: Model, link: number): number {
  const detail = model.played.detail;
  if (detail) return detail.hop_start[model.hopsOfLink[model.hopFirst[link]!]!] ?? Infinity;
  const loads = model.played.binned?.loads[link] ?? "";
  const first = /[^A]/.exec(loads);
  return first ? first.index : Infinity;
}

export function drawRow(context: CanvasRenderingContext2D, model: Model, messages: RankMessages, row: Row, strip: Strip, look: RowLook) {
  if (row.kind === "critical") drawCritical(context, model, strip, look);
  else if (!model.played.detail) drawLoads(context, model, row, strip, look);
  else if (row.kind === "link") drawHops(context, model, row.id, strip, look);
  else {
    const half = (strip.height - 1) / 2;
    drawMessages(context, model, messages.out[row.id]!, { ...strip, height: half }, look);
    drawMessages(context, model, messages.into[row.id]!, { ...strip, y: strip.y + half + 1, height: half }, look);
  }
}

const pixel = (strip: Strip, at: number) => strip.x + ((at - strip.from) / (strip.to - strip.from)) * strip.width;

// A span of time in a row, at least half a pixel wide.
function fillSpan(context: CanvasRenderingContext2D, strip: Strip, from: number, to: number) {
  const left = Math.max(strip.x, pixel(strip, from)), right = Math.min(strip.x + strip.width, pixel(strip, to));
  const width = right - left;
  if (width < 0) return;
  context.fillRect(left, strip.y, width > 3 ? width - 0.75 : Math.max(width, 0.5), strip.height);
}

function drawCritical(context: CanvasRenderingContext2D, model: Model, strip: Strip, look: RowLook) {
  const { critical } = model;
  for (let i = after(critical.end, strip.from); i < critical.kind.length && critical.start[i]! < strip.to; i++) {
    context.fillStyle = category(kindColour[critical.kind[i]!] ?? 7, look.theme);
    fillSpan(context, strip, critical.start[i]!, critical.end[i]!);
  }
}

function isDim(look: RowLook, message: number, link: number): boolean {
  if (!look.followed) return false;
  return look.followed.messages ? !look.followed.messages.has(message) : !look.followed.links.has(link);
}

function messageColour(model: Model, message: number, look: RowLook): string {
  const detail = model.played.detail!;
  return category(detail.op[detail.transfer_first[message]!] === "r" ? 1 : 0, look.theme);
}

function drawHops(context: CanvasRenderingContext2D, model: Model, link: number, strip: Strip, look: RowLook) {
  const detail = model.played.detail!;
  const first = model.hopFirst[link]!, last = model.hopFirst[link + 1]!;
  for (let i = first; i < last; i++) {
    const hop = model.hopsOfLink[i]!;
    if (detail.hop_start[hop]! > strip.to) break;
    if (detail.hop_end[hop]! < strip.from) continue;
    const message = model.messageOfHop[hop]!;
    context.globalAlpha = isDim(look, message, link) ? 0.15 : 0.9;
    context.fillStyle = messageColour(model, message, look);
    fillSpan(context, strip, detail.hop_start[hop]!, detail.hop_end[hop]!);
  }
  context.globalAlpha = 1;
}

function drawMessages(context: CanvasRenderingContext2D, model: Model, list: number[], strip: Strip, look: RowLook) {
  const detail = model.played.detail!;
  for (const message of list) {
    if (detail.start[message]! > strip.to) break;
    if (detail.end[message]! < strip.from) continue;
    context.globalAlpha = isDim(look, message, -1) ? 0.12 : 0.7;
    context.fillStyle = messageColour(model, message, look);
    fillSpan(context, strip, detail.start[message]!, detail.end[message]!);
  }
  context.globalAlpha = 1;
}

// A strip of loads, where single messages are not known: of a link, or of all that leave (above) and enter (below) a
// rank.
function drawLoads(context: CanvasRenderingContext2D, model: Model, row: Row, strip: Strip, look: RowLook) {
  const bins = model.played.binned?.bins;
  if (!bins) return;
  const { from } = model.data.topology.links;
  const node = row.kind === "rank" ? model.nodeOfRank[row.id]! : -1;
  const links = row.kind === "link" ? [row.id] : model.linksOfRank[row.id]!;
  const halves = row.kind === "link" ? [links] : [links.filter((l) => from[l] === node), links.filter((l) => from[l] !== node)];
  const height = (strip.height - (halves.length - 1)) / halves.length;
  const width = model.end / bins;
  halves.forEach((half, h) => {
    if (half.length === 0) return;
    const dim = look.followed !== null && !half.some((link) => look.followed!.links.has(link));
    context.globalAlpha = dim ? 0.25 : 1;
    const part = { ...strip, y: strip.y + h * (height + 1), height };
    for (let bin = Math.max(0, Math.floor(strip.from / width)); bin < bins && bin * width < strip.to; bin++) {
      let load = 0;
      for (const link of half) load += model.load(link, bin * width, (bin + 1) * width);
      context.fillStyle = loadColour(load / half.length, look.theme);
      const left = Math.max(part.x, pixel(part, bin * width)), right = Math.min(part.x + part.width, pixel(part, (bin + 1) * width));
      context.fillRect(left, part.y, right - left + 0.3, part.height);
    }
  });
  context.globalAlpha = 1;
}

// The thing that a row shows at a time: a piece of the critical path, the shortest message around that time, or a load.
export function rowAt(model: Model, messages: RankMessages, row: Row, at: number, slack: number, lower: boolean): { piece: number } | { message: number } | { load: number } | null {
  const { critical } = model;
  if (row.kind === "critical") {
    const i = after(critical.end, at);
    return i < critical.kind.length ? { piece: i } : null;
  }
  const detail = model.played.detail;
  if (!detail) {
    const node = row.kind === "rank" ? model.nodeOfRank[row.id]! : -1;
    const { from } = model.data.topology.links;
    const links = row.kind === "link" ? [row.id] : model.linksOfRank[row.id]!.filter((l) => (from[l] === node) !== lower);
    return { load: links.reduce((sum, link) => sum + model.loadNow(link, at), 0) / Math.max(1, links.length) };
  }
  let best = -1, least = Infinity;
  const consider = (message: number, start: number, end: number) => {
    if (start - slack > at || end + slack < at || end - start >= least) return;
    least = end - start;
    best = message;
  };
  if (row.kind === "link") {
    for (let i = model.hopFirst[row.id]!; i < model.hopFirst[row.id + 1]!; i++) {
      const hop = model.hopsOfLink[i]!;
      consider(model.messageOfHop[hop]!, detail.hop_start[hop]!, detail.hop_end[hop]!);
    }
  } else {
    for (const m of (lower ? messages.into : messages.out)[row.id]!) consider(m, detail.start[m]!, detail.end[m]!);
  }
  return best < 0 ? null : { message: best };
}
