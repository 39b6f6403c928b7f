// A tooltip beside the pointer about the thing under it. Screen readers find its facts in the tables instead.
import { signal } from "@preact/signals";

const shown = signal<{ x: number; y: number; lines: string[] } | null>(null);

export function showTooltip(event: { clientX: number; clientY: number }, lines: string[]) {
  shown.value = { x: event.clientX, y: event.clientY, lines };
}
export function hideTooltip() {
  shown.value = null;
}

export function Tooltip() {
  const tip = shown.value;
  if (!tip) return null;
  const right = tip.x > innerWidth / 2, low = tip.y > innerHeight / 2;
  const style = {
    [right ? "right" : "left"]: `${right ? innerWidth - tip.x + 12 : tip.x + 12}px`,
    [low ? "bottom" : "top"]: `${low ? innerHeight - tip.y + 12 : tip.y + 12}px`,
  };
  return (
    <div class="tooltip" style={style} aria-hidden="true">
      {tip.lines.map((line, i) => <div class={i === 0 ? "first" : ""}>{line}</div>)}
    </div>
  );
}
