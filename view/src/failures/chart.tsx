// A bar for each failure, the costliest first: how many times as long as on the whole machine. The axis begins at 0. All
// looks are attributes, so that the same drawing is saved as a file.
import * as format from "../shared/format";
import { categories } from "../shared/colours";
import type { Look } from "../shared/look";
import type { Cost } from "./state";

const rowStep = 24;
const top = 22;
export const heightOf = (rows: number) => top + rows * rowStep + 8;
export const rowAt = (y: number) => Math.floor((y - top) / rowStep);

export interface BarsProps {
  costs: Cost[];
  look: Look;
  width: number;
  pointed?: string | null;
}

export function Bars({ costs, look, width, pointed }: BarsProps) {
  const room = Math.min(Math.max(...costs.map(({ cables }) => cables.length)) * 7.6 + 14, width * 0.4);
  const said = 132;
  const most = Math.max(1, ...costs.flatMap(({ slowdown, least }) => [slowdown ?? 0, least ?? 0]));
  const at = (value: number) => room + (value / most) * (width - room - said);
  const step = [0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000].find((each) => (most / each) * 34 <= width - room - said) ?? 10000;
  const ticks = Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step);
  const bottom = heightOf(costs.length) - 8;
  const colour = categories[look.theme][0]!;
  return (
    <g font-family="system-ui, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif" font-size="12">
      {ticks.map((tick) => (
        <g key={tick}>
          <line x1={at(tick)} x2={at(tick)} y1={top - 4} y2={bottom} stroke={tick === 1 ? look.soft : look.line} />
          <text x={at(tick)} y={12} text-anchor="middle" font-size="11" fill={look.soft}>{format.significant(tick)}</text>
        </g>
      ))}
      {costs.map(({ cables, slowdown, time, least }, i) => {
        const y = top + (i + 0.5) * rowStep;
        const end = Math.max(at(slowdown ?? 0), at(least ?? 0) + 2);
        return (
          <g key={cables} opacity={pointed && pointed !== cables ? 0.45 : 1}>
            <text x={room - 8} y={y + 4} text-anchor="end" fill={look.ink} data-failure={cables}>{format.shortened(cables, Math.floor((room - 8) / 7.6))}</text>
            {slowdown !== null && <rect x={room} y={y - 8} width={at(slowdown) - room} height="16" fill={colour} fill-opacity="0.8" />}
            {least !== null && <line x1={at(least)} x2={at(least)} y1={y - 10} y2={y + 10} stroke={look.ink} stroke-width="2" />}
            <text x={end + 8} y={y + 4} fill={look.ink}>{slowdown !== null ? `${slowdown.toFixed(2)}\u00d7, ${format.time(time!, 4)}` : time !== null ? format.time(time, 4) : "no plan"}</text>
          </g>
        );
      })}
    </g>
  );
}
