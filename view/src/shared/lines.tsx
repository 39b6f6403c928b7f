// A text of a drawing in lines, the middle of them at y. All looks are attributes.
import type { ComponentProps } from "preact";

export const lineStep = 14;

export function Lines({ lines, x, y, ...looks }: { lines: string[]; x: number; y: number } & Omit<ComponentProps<"text">, "x" | "y">) {
  const first = y + 4 - ((lines.length - 1) * lineStep) / 2;
  return <text {...looks} x={x} y={first}>{lines.length === 1 ? lines[0] : lines.map((line, i) => <tspan key={i} x={x} y={first + i * lineStep}>{line}</tspan>)}</text>;
}
