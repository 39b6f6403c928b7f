// One measure of the engines as SVG: lines over sizes on logarithmic axes, or bars from 0 where there is one size. All looks
// are attributes, so that the same drawing is saved as a file.
import type { Look } from "../shared/look";
import { Lines, lineStep } from "../shared/lines";
import { font, widthOf, wrapped } from "../shared/text";
import * as format from "../shared/format";
import { Axis, FromZero, apart } from "../shared/axis";
import type { EngineData } from "./data";
import { Mark } from "./marks";
import { automatic, colourOfEngine, markOfEngine, pointAt, pointsOf, type Measure } from "./state";

export interface ChartProps {
  measure: Measure;
  engines: EngineData[];
  sizes: number[];
  look: Look;
  width: number;
  height: number;
  chosen: EngineData | null;
  pointed?: EngineData | null;
  cursor?: number | null; // a size
}

const top = 10;
const bottomMargin = 26;
const beside = 30; // pixels from the end of the plot to a label: the mark's room and a line to it

// The names at the lines' ends, in lines.
function namesOf(engines: EngineData[], width: number) {
  return new Map(engines.map(({ name }) => [name, wrapped(name, 0.36 * width, 12, 700)]));
}
const highest = (names: Map<string, string[]>) => [...names.values()].reduce((sum, lines) => sum + lines.length * lineStep, 0);

export const chartHeight = (engines: EngineData[], width: number) => Math.max(330, highest(namesOf(engines, width)) + top + bottomMargin + 8);

// Where the plot is in a chart of lines, its axes, and the names beside it.
export function plotOf({ engines, sizes, measure, width, height }: Pick<ChartProps, "engines" | "sizes" | "measure" | "width" | "height">) {
  const names = namesOf(engines, width);
  const widest = Math.max(0, ...[...names.values()].flat().map((line) => widthOf(line, 12, 700)));
  const values = engines.flatMap((engine) => pointsOf(engine).map(measure.value));
  const y = new Axis(values, height - bottomMargin, top);
  const left = Math.max(0, ...y.ticks().map((tick) => widthOf(measure.show(tick), 11))) + 10;
  return { x: new Axis(sizes, left, width - widest - beside), y, names };
}

// Middles of labels of these heights, moved apart so that none overlaps the next.
export function spread(wanted: number[], heights: number[], from: number, to: number): number[] {
  const order = wanted.map((_, i) => i).sort((a, b) => wanted[a]! - wanted[b]!);
  const placed = [...wanted];
  let least = from;
  for (const i of order) {
    placed[i] = Math.max(placed[i]!, least + heights[i]! / 2);
    least = placed[i]! + heights[i]! / 2;
  }
  let most = to;
  for (const i of order.reverse()) {
    placed[i] = Math.min(placed[i]!, most - heights[i]! / 2);
    most = placed[i]! - heights[i]! / 2;
  }
  return placed;
}

// The engines in the order of drawing: highlighted engines are drawn last, over the others.
function inOrder({ engines, chosen, pointed }: ChartProps): EngineData[] {
  const weight = (engine: EngineData) => (engine === pointed ? 4 : engine === chosen ? 3 : engine === automatic ? 0 : engine.leads ? 2 : 1);
  return [...engines].sort((a, b) => weight(a) - weight(b));
}

export function LineChart(props: ChartProps) {
  const { measure, look, chosen, pointed, cursor, sizes } = props;
  const { x, y, names } = plotOf(props);
  const order = inOrder(props).filter((engine) => pointsOf(engine).some((point) => measure.value(point) > 0));
  const ends = order.map((engine) => y.at(measure.value(pointsOf(engine).at(-1)!)));
  const places = spread(ends, order.map(({ name }) => names.get(name)!.length * lineStep), 2, y.from + 6);
  const dim = (engine: EngineData) => (pointed && pointed !== engine ? 0.25 : 1);
  const labelled = apart(sizes, (size) => x.at(size), (size) => widthOf(format.size(size), 11));
  const marked = apart(sizes, (size) => x.at(size), () => 9);
  return (
    <g font-family={font} font-size="11">
      {apart([...y.ticks()].reverse(), (tick) => y.at(tick), () => 10).map((tick) => (
        <g key={tick}>
          <line x1={x.from} x2={x.to} y1={y.at(tick)} y2={y.at(tick)} stroke={look.line} />
          <text x={x.from - 6} y={y.at(tick) + 4} text-anchor="end" fill={look.soft} data-tick="y">{measure.show(tick)}</text>
        </g>
      ))}
      {sizes.map((size) => <line key={size} x1={x.at(size)} x2={x.at(size)} y1={y.from} y2={y.from + 4} stroke={look.soft} />)}
      {labelled.map((size) => <text key={size} x={x.at(size)} y={y.from + 18} text-anchor="middle" fill={look.soft} data-tick="x">{format.size(size)}</text>)}
      <line x1={x.from} x2={x.to} y1={y.from} y2={y.from} stroke={look.soft} />
      {cursor != null && <line x1={x.at(cursor)} x2={x.at(cursor)} y1={y.to} y2={y.from} stroke={look.soft} stroke-dasharray="3 3" />}
      {order.map((engine, i) => {
        const colour = colourOfEngine(engine, look.theme, look.ink);
        const isAuto = engine === automatic, strong = engine === chosen || engine === pointed;
        const seen = pointsOf(engine).filter((point) => measure.value(point) > 0);
        const width = isAuto ? 9 : strong ? 3 : engine.leads || engine.measured || engine.group === "machines" ? 2 : 1.2;
        return (
          <g key={engine.name} opacity={dim(engine)}>
            <path d={seen.map((point, k) => `${k === 0 ? "M" : "L"}${x.at(point.size).toFixed(1)} ${y.at(measure.value(point)).toFixed(1)}`).join("")}
              fill="none" stroke={colour} stroke-width={width} stroke-linejoin="round" stroke-linecap="round" stroke-opacity={isAuto ? 0.22 : 1} stroke-dasharray={engine.measured ? "6 5" : undefined} />
            {!isAuto && seen.filter(({ size }) => marked.includes(size) || size === cursor).map((point) => (
              <Mark key={point.size} shape={markOfEngine(engine)} x={x.at(point.size)} y={y.at(measure.value(point))} r={point.size === cursor ? 4.5 : strong ? 4 : 3.2} colour={colour} paper={look.paper} hollow={engine.measured} />
            ))}
            <path d={`M${x.to + 1} ${ends[i]!.toFixed(1)}L${x.to + 10} ${places[i]!.toFixed(1)}`} fill="none" stroke={look.strong} stroke-width="0.75" />
            {isAuto ? <line x1={x.to + 13} x2={x.to + 25} y1={places[i]} y2={places[i]} stroke={colour} stroke-width="9" stroke-opacity="0.22" /> : <Mark shape={markOfEngine(engine)} x={x.to + 18} y={places[i]!} r={3.6} colour={colour} paper={look.paper} hollow={engine.measured} />}
            <Lines lines={names.get(engine.name)!} x={x.to + beside - 2} y={places[i]!} font-size="12" font-weight={strong ? 700 : 400} font-style={isAuto ? "italic" : undefined} fill={colour} data-engine={engine.name} />
          </g>
        );
      })}
    </g>
  );
}

const barHigh = 14;
// The bars of one size, the fastest first: their middles, and the names beside them.
export function barsOf(engines: EngineData[], size: number, width: number) {
  const names = namesOf(engines, width);
  let y = 4;
  const bars = engines.flatMap((engine) => pointAt(engine, size) ?? []).sort((a, b) => a.time - b.time).map((point) => {
    const lines = names.get(point.engine.name)!, high = Math.max(22, lines.length * lineStep + 6);
    y += high;
    return { point, lines, middle: y - high / 2, bottom: y };
  });
  return { bars, bottom: y, left: Math.max(0, ...bars.flatMap(({ lines }) => lines).map((line) => widthOf(line, 12, 700))) + 24 };
}
export const barsHeight = (engines: EngineData[], size: number, width: number) => barsOf(engines, size, width).bottom + bottomMargin;

export function BarChart(props: ChartProps) {
  const { measure, look, chosen, pointed, engines, sizes, width } = props;
  const { bars, bottom, left } = barsOf(engines, sizes[0]!, width);
  const values = bars.map(({ point }) => measure.value(point));
  const right = Math.max(0, ...values.map((value) => widthOf(measure.show(value), 12, 700))) + 10;
  const x = new FromZero(values, left, width - right);
  const ticks = apart(x.ticks(70), (tick) => x.at(tick), (tick) => widthOf(measure.show(tick), 11));
  return (
    <g font-family={font} font-size="12">
      {ticks.map((tick) => (
        <g key={tick}>
          <line x1={x.at(tick)} x2={x.at(tick)} y1={4} y2={bottom + 4} stroke={tick === 0 ? look.soft : look.line} />
          <text x={x.at(tick)} y={bottom + 18} text-anchor="middle" font-size="11" fill={look.soft} data-tick="x">{tick === 0 ? "0" : measure.show(tick)}</text>
        </g>
      ))}
      {bars.map(({ point, lines, middle }) => {
        const { engine } = point, value = measure.value(point), isAuto = engine === automatic;
        const colour = colourOfEngine(engine, look.theme, look.ink);
        const weight = engine === chosen || engine === pointed ? 700 : 400;
        return (
          <g key={engine.name} opacity={pointed && pointed !== engine ? 0.4 : 1}>
            <Lines lines={lines} x={left - 20} y={middle} text-anchor="end" font-weight={weight} font-style={isAuto ? "italic" : undefined} fill={colour} data-engine={engine.name} />
            {!isAuto && <Mark shape={markOfEngine(engine)} x={left - 10} y={middle} r={3.6} colour={colour} paper={look.paper} hollow={engine.measured} />}
            {value > 0 && <rect x={left} y={middle - barHigh / 2} width={Math.max(1, x.at(value) - left)} height={barHigh} fill={colour} fill-opacity={isAuto || engine.measured ? 0.22 : 0.8} stroke={isAuto || engine.measured ? colour : "none"} stroke-dasharray={engine.measured ? "6 5" : undefined} data-value={value} />}
            <text x={(value > 0 ? x.at(value) : left) + 7} y={middle + 4} font-weight={weight} fill={look.ink} stroke={look.paper} stroke-width="3" paint-order="stroke">{measure.show(value)}</text>
          </g>
        );
      })}
    </g>
  );
}
