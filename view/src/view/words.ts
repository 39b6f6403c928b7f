// Names of what one letter stands for in the page's data.
const kinds: Record<string, string> = {
  b: "bytes on links", a: "latency of links", o: "overhead of messages", t: "threadblocks", w: "hand-offs",
  h: "messages noticed", l: "launch",
};
export function kindName(letter: string): string {
  return kinds[letter] ?? "waiting";
}

const opcodes: Record<string, string> = {
  s: "send", r: "recv", c: "recv_copy_send", f: "recv_reduce_send", p: "recv_reduce_copy", a: "recv_reduce_copy_send",
  k: "copy", e: "reduce", n: "nop",
};
export function opcodeName(letter: string): string {
  return opcodes[letter] ?? letter;
}

const waits: Record<string, string> = {
  d: "another threadblock", m: "a message", s: "a free slot", "-": "nothing",
};
export function waitName(letter: string): string {
  return waits[letter] ?? letter;
}
