// The names of the kinds that the page's data has as single letters.
import type { CriticalData } from "./data";
import type { Model } from "./model";

const kinds: Record<string, string> = {
  b: "bytes on links", a: "latency of links", o: "overhead of messages", t: "threadblocks", w: "hand-offs",
  h: "notice of messages", l: "launch",
};
export function kindName(letter: string): string {
  return kinds[letter]!;
}
// Where piece i of a critical path is: a link or a threadblock.
export function pieceName(model: Model, path: CriticalData, i: number): string {
  const { link, rank, block } = path;
  if (link[i]! >= 0) return model.linkName(link[i]!);
  return rank[i]! >= 0 ? `rank ${rank[i]}, threadblock ${block[i]}` : "";
}

const opcodes: Record<string, string> = {
  s: "send", r: "recv", c: "recv_copy_send", f: "recv_reduce_send", p: "recv_reduce_copy", a: "recv_reduce_copy_send",
  k: "copy", e: "reduce", n: "nop",
};
export function opcodeName(letter: string): string {
  return opcodes[letter]!;
}

const waits: Record<string, string> = {
  b: "another threadblock", h: "the hand-off from another threadblock", m: "a message", s: "a free slot", l: "its link", "-": "nothing",
};
export function waitName(letter: string): string {
  return waits[letter]!;
}

const buffers: Record<string, string> = { i: "input", o: "output", s: "scratch" };
export function operandName(buffer: string, slot: number): string {
  return buffer === "-" ? "" : `${buffers[buffer]} ${slot}`;
}
