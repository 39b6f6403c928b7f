// A bar for each failure, the costliest first: the time over the lower bound of the machine that is left, or over that on
// the whole machine. The axis begins at 0. All looks are attributes, so that the same drawing is saved as a file.
import * as format from "../shared/format";
import { categories } from "../shared/colours";
import { FromZero, apart } from "../shared/axis";
import { Lines, lineStep } from "../shared/lines";
import type { Look } from "../shared/look";
import { font, widthOf, wrapped } from "../shared/text";
import { leastOf, valueOf, type Cost } from "./state";

const top = 22;
const barHigh = 16;

export interface BarsProps {
  costs: Cost[];
  look: Look;
  width: number;
  pointed?: string | null;
}

const said = (cost: Cost) => {
  const value = valueOf(cost);
  return cost.time === null ? "no plan" : value === null ? format.time(cost.time, 4) : `${value.toFixed(2)}\u00d7, ${format.time(cost.time, 4)}`;
};

// Rows with the names of failures beside the bars or, where the drawing is narrow, above them.
export function rowsOf(costs: Cost[], width: number) {
  const above = width < 560;
  let y = top;
  const rows = costs.map((cost) => {
    const lines = wrapped(cost.cables, above ? width - 12 : 0.3 * width, 12), names = lines.length * lineStep;
    const from = y, high = above ? names + barHigh + 8 : Math.max(24, names + 6);
    y += high;
    return { cost, lines, name: above ? from + names / 2 + 2 : from + high / 2, bar: above ? from + names + 2 + barHigh / 2 : from + high / 2, bottom: y };
  });
  const widest = Math.max(0, ...rows.flatMap(({ lines }) => lines).map((line) => widthOf(line, 12)));
  return { rows, above, left: above ? 6 : widest + 14, right: Math.max(0, ...costs.map((cost) => widthOf(said(cost), 12))) + 14, bottom: y };
}
export const heightOf = (costs: Cost[], width: number) => rowsOf(costs, width).bottom + 8;

export function Bars({ costs, look, width, pointed }: BarsProps) {
  const { rows, above, left, right, bottom } = rowsOf(costs, width);
  const x = new FromZero(costs.flatMap((cost) => [valueOf(cost) ?? 0, leastOf(cost) ?? 0]).concat(1), left, width - right);
  const show = (tick: number) => format.significant(tick);
  const colour = categories[look.theme][0]!;
  return (
    <g font-family={font} font-size="12">
      {apart(x.ticks(50), (tick) => x.at(tick), (tick) => widthOf(show(tick), 11)).map((tick) => (
        <g key={tick}>
          <line x1={x.at(tick)} x2={x.at(tick)} y1={top - 4} y2={bottom} stroke={tick === 0 ? look.soft : look.line} />
          <text x={x.at(tick)} y={12} text-anchor="middle" font-size="11" fill={look.soft} data-tick="x">{show(tick)}</text>
        </g>
      ))}
      {rows.map(({ cost, lines, name, bar }) => {
        const value = valueOf(cost), least = leastOf(cost);
        const end = Math.max(x.at(value ?? 0), x.at(least ?? 0) + 2);
        return (
          <g key={cost.cables} opacity={pointed && pointed !== cost.cables ? 0.45 : 1}>
            <Lines lines={lines} x={above ? left : left - 8} y={name} text-anchor={above ? "start" : "end"} fill={look.ink} stroke={look.paper} stroke-width="3" paint-order="stroke" data-failure={cost.cables} />
            {value !== null && <rect x={left} y={bar - barHigh / 2} width={x.at(value) - left} height={barHigh} fill={colour} fill-opacity="0.8" />}
            {least !== null && <line x1={x.at(least)} x2={x.at(least)} y1={bar - barHigh / 2 - 2} y2={bar + barHigh / 2 + 2} stroke={look.ink} stroke-width="2" />}
            <text x={end + 8} y={bar + 4} fill={look.ink} stroke={look.paper} stroke-width="3" paint-order="stroke">{said(cost)}</text>
          </g>
        );
      })}
    </g>
  );
}
