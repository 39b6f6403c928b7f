// Widths of texts in drawings, and lines that fit into a width.

import type { DrawingData, TopologyData } from "../view/data";

export const font = "system-ui, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif";

let context: CanvasRenderingContext2D | null = null;
// Pixels of a text. A saved drawing may be shown in a slightly wider font, so there is some room.
export function widthOf(text: string, size: number, weight = 400): number {
  context ??= document.createElement("canvas").getContext("2d")!;
  context.font = `${weight} ${size}px ${font}`;
  return 1.04 * context.measureText(text).width;
}

// The lines of an item of a drawing of a machine. The layout shortens a long name; it stands here in full.
export function linesOfItem(topology: TopologyData, { items }: DrawingData, item: number, size: number): string[] {
  const lines = items.lines[item]!.split("\n");
  const first = items.node_first[item]!;
  if (items.node_first[item + 1]! - first !== 1 || !lines.some((line) => line.endsWith("\u2026"))) return lines;
  return wrapped(topology.nodes.id[items.node[first]!]!, Math.max(24, items.width[item]! - 6), size);
}

// The lines of a text within a width: broken after a blank, a hyphen, a colon or a slash where one is, else anywhere.
// Together they are the text.
export function wrapped(text: string, width: number, size: number, weight = 400): string[] {
  const fits = (part: string) => widthOf(part.trimEnd(), size, weight) <= width;
  const lines: string[] = [];
  for (let rest = text; rest; ) {
    let end = rest.length;
    while (end > 1 && !fits(rest.slice(0, end))) end--;
    if (end < rest.length) {
      const broken = Math.max(...[" ", "-", ":", "/", ","].map((mark) => rest.lastIndexOf(mark, end - 1))) + 1;
      if (broken > end / 3) end = broken;
    }
    lines.push(rest.slice(0, end));
    rest = rest.slice(end);
  }
  return lines;
}
