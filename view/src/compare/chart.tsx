// One measure of the engines as SVG, on logarithmic axes: lines over sizes, or rows where there is one size. All looks
// are attributes, so that the same drawing is saved as a file.
import type { Look } from "../shared/look";
import * as format from "../shared/format";
import type { EngineData } from "./data";
import { automatic, colourOfEngine, pointAt, pointsOf, type Measure } from "./state";

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

export const font = "system-ui, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif";
export const labelStep = 14;
const top = 10;
export const bottomMargin = 26;

// The pixel of a value between two pixels.
export class Axis {
  readonly low: number;
  readonly high: number;
  constructor(values: number[], readonly from: number, readonly to: number) {
    const seen = values.filter((value) => value > 0 && Number.isFinite(value));
    const low = seen.length > 0 ? Math.min(...seen) : 1, high = seen.length > 0 ? Math.max(...seen) : 1;
    const room = high > low ? (high / low) ** 0.04 : 2;
    this.low = low / room;
    this.high = high * room;
  }
  at(value: number): number {
    return this.from + (Math.log(value / this.low) / Math.log(this.high / this.low)) * (this.to - this.from);
  }
  // 1, 2 and 5 times powers of ten; powers alone where they are many.
  ticks(): number[] {
    const found: number[] = [];
    const steps = this.high / this.low < 300 ? [1, 2, 5] : [1];
    for (let power = 10 ** Math.floor(Math.log10(this.low)); power <= this.high; power *= 10)
      for (const step of steps) if (step * power >= this.low && step * power <= this.high) found.push(step * power);
    return found;
  }
}

export const longest = (engines: EngineData[]) => Math.max(...engines.map(({ name }) => name.length));

// Where the plot is in a chart of lines, and its axes.
export function plotOf({ engines, sizes, measure, width, height }: Pick<ChartProps, "engines" | "sizes" | "measure" | "width" | "height">) {
  const values = engines.flatMap((engine) => pointsOf(engine).map(measure.value));
  const right = width - Math.min(longest(engines) * 6.4 + 22, width * 0.42);
  return {
    x: new Axis(sizes, 62, right),
    y: new Axis(values, height - bottomMargin, top),
  };
}

// Pixels of labels, moved apart so that none overlaps the next.
export function spread(wanted: number[], from: number, to: number): number[] {
  const order = wanted.map((_, i) => i).sort((a, b) => wanted[a]! - wanted[b]!);
  const placed = [...wanted];
  let least = from;
  for (const i of order) {
    placed[i] = Math.max(placed[i]!, least);
    least = placed[i]! + labelStep;
  }
  let most = to;
  for (const i of order.reverse()) {
    placed[i] = Math.min(placed[i]!, most);
    most = placed[i]! - labelStep;
  }
  return placed;
}

// The engines in the order of drawing: highlighted engines are drawn last, over the others.
function inOrder({ engines, chosen, pointed }: ChartProps): EngineData[] {
  const weight = (engine: EngineData) => (engine === pointed ? 4 : engine === chosen ? 3 : engine === automatic ? 0 : engine.leads ? 2 : 1);
  return [...engines].sort((a, b) => weight(a) - weight(b));
}

export function LineChart(props: ChartProps) {
  const { measure, look, chosen, pointed, cursor, sizes, height } = props;
  const { x, y } = plotOf(props);
  const order = inOrder(props).filter((engine) => pointsOf(engine).some((point) => measure.value(point) > 0));
  const ends = order.map((engine) => y.at(measure.value(pointsOf(engine).at(-1)!)));
  const places = spread(ends, top + 4, height - bottomMargin);
  const dim = (engine: EngineData) => (pointed && pointed !== engine ? 0.25 : 1);
  let last = -Infinity;
  const labelled = sizes.filter((size) => {
    if (x.at(size) - last < 52) return false;
    last = x.at(size);
    return true;
  });
  return (
    <g font-family={font} font-size="11">
      {y.ticks().map((tick) => (
        <g key={tick}>
          <line x1={x.from} x2={x.to} y1={y.at(tick)} y2={y.at(tick)} stroke={look.line} />
          <text x={x.from - 6} y={y.at(tick) + 4} text-anchor="end" fill={look.soft}>{measure.show(tick)}</text>
        </g>
      ))}
      {sizes.map((size) => <line key={size} x1={x.at(size)} x2={x.at(size)} y1={y.from} y2={y.from + 4} stroke={look.soft} />)}
      {labelled.map((size) => <text key={size} x={x.at(size)} y={y.from + 18} text-anchor="middle" fill={look.soft}>{format.size(size)}</text>)}
      <line x1={x.from} x2={x.to} y1={y.from} y2={y.from} stroke={look.soft} />
      {cursor != null && <line x1={x.at(cursor)} x2={x.at(cursor)} y1={y.to} y2={y.from} stroke={look.soft} stroke-dasharray="3 3" />}
      {order.map((engine, i) => {
        const colour = colourOfEngine(engine, look.theme, look.ink);
        const isAuto = engine === automatic, strong = engine === chosen || engine === pointed;
        const seen = pointsOf(engine).filter((point) => measure.value(point) > 0);
        const width = isAuto ? 7 : strong ? 3 : engine.leads || engine.measured || engine.group === "machines" ? 2 : 1.2;
        return (
          <g key={engine.name} opacity={dim(engine)}>
            <path d={seen.map((point, k) => `${k === 0 ? "M" : "L"}${x.at(point.size).toFixed(1)} ${y.at(measure.value(point)).toFixed(1)}`).join("")}
              fill="none" stroke={colour} stroke-width={width} stroke-linejoin="round" stroke-linecap="round" stroke-opacity={isAuto ? 0.28 : 1} stroke-dasharray={engine.measured ? "6 5" : undefined} />
            {(strong || engine.leads || engine.measured || seen.length === 1) && seen.map((point) => (
              <circle key={point.size} cx={x.at(point.size)} cy={y.at(measure.value(point))} r={point.size === cursor ? 4.5 : strong ? 3 : 2.5} fill={engine.measured ? look.paper : colour} stroke={engine.measured ? colour : look.paper} stroke-width={engine.measured || point.size === cursor ? 1.5 : 0} />
            ))}
            <path d={`M${x.at(seen.at(-1)!.size) + 4} ${ends[i]!.toFixed(1)}L${x.to + 2} ${ends[i]!.toFixed(1)}L${x.to + 14} ${places[i]!.toFixed(1)}`} fill="none" stroke={colour} stroke-opacity="0.55" />
            <text x={x.to + 18} y={places[i]! + 4} font-size="12" font-weight={isAuto || strong ? 700 : 400} fill={colour} data-engine={engine.name}>{format.shortened(engine.name, Math.floor((props.width - x.to - 14) / 6.4))}</text>
          </g>
        );
      })}
    </g>
  );
}

const rowStep = 22;
export const rowsHeight = (engines: EngineData[]) => engines.length * rowStep + 12;

// The one size: a row for each engine, the fastest first.
export function RowChart(props: ChartProps) {
  const { measure, look, chosen, pointed, engines, sizes, width } = props;
  const size = sizes[0]!;
  const rows = engines.flatMap((engine) => pointAt(engine, size) ?? []).sort((a, b) => a.time - b.time);
  const left = Math.min(longest(engines) * 6.9 + 12, width * 0.5);
  const x = new Axis(rows.map(measure.value), left, width - 78);
  return (
    <g font-family={font} font-size="12">
      {rows.map((point, i) => {
        const { engine } = point;
        const y = 6 + (i + 0.5) * rowStep, value = measure.value(point);
        const colour = colourOfEngine(engine, look.theme, look.ink);
        const weight = engine === automatic || engine === chosen || engine === pointed ? 700 : 400;
        return (
          <g key={engine.name} opacity={pointed && pointed !== engine ? 0.4 : 1}>
            <text x={left - 8} y={y + 4} text-anchor="end" font-weight={weight} fill={colour} data-engine={engine.name}>{format.shortened(engine.name, Math.floor(left / 6.9))}</text>
            {value > 0 && <line x1={left} x2={x.at(value)} y1={y} y2={y} stroke={colour} stroke-width="2" stroke-dasharray={engine.measured ? "6 5" : undefined} />}
            {value > 0 && <circle cx={x.at(value)} cy={y} r="4.5" fill={engine.measured ? look.paper : colour} stroke={colour} stroke-width="1.5" />}
            <text x={value > 0 ? x.at(value) + 9 : left} y={y + 4} font-weight={weight} fill={look.ink}>{measure.show(value)}</text>
          </g>
        );
      })}
    </g>
  );
}
