// Widths of texts in drawings, and lines that fit into a width.

export const font = "system-ui, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif";

let context: CanvasRenderingContext2D | null = null;
// Pixels of a text. A saved drawing may be shown in a slightly wider font, so there is some room.
export function widthOf(text: string, size: number, weight = 400): number {
  context ??= document.createElement("canvas").getContext("2d")!;
  context.font = `${weight} ${size}px ${font}`;
  return 1.04 * context.measureText(text).width;
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
