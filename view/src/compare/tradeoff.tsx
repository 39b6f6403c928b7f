// Time against what a plan costs beside it, messages or threadblocks, at the size that is read off. The front is what no
// other plan equals or beats in both. All plans count, shown in the other charts or not.
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import * as format from "../shared/format";
import { lookNow, print, type Look } from "../shared/look";
import { hideTooltip, showTooltip } from "../shared/tooltip";
import { font, widthOf } from "../shared/text";
import { Axis, apart } from "../shared/axis";
import { Mark } from "./marks";
import { linesOf, nameOf } from "./said";
import { saveDrawing } from "./figure";
import { automatic, choose, chosen, colourOfEngine, cost, costs, cursor, frontOf, markOfEngine, plansAt, pointed, sizes, type Cost, type Point } from "./state";

interface Drawn {
  points: Point[];
  front: Point[];
  cost: Cost;
  width: number;
  height: number;
}

const bottomMargin = 42, high = 14;

function axesOf({ points, cost: { name }, width, height }: Drawn) {
  const y = new Axis(points.map(({ time }) => time), height - bottomMargin, 10);
  const left = Math.max(0, ...y.ticks().map((tick) => widthOf(format.time(tick, 3), 11))) + 10;
  // Half of the last tick's text sticks out of the plot.
  return { x: new Axis(points.map((point) => point[name]!), left, width - 24), y };
}

// Counts are whole: 2.5 messages are no tick.
const show = (value: number) => format.count(Math.round(value));

interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}
const overlap = (a: Box, b: Box) =>
  Math.max(0, Math.min(a.left + a.width, b.left + b.width) - Math.max(a.left, b.left)) * Math.max(0, Math.min(a.top + a.height, b.top + b.height) - Math.max(a.top, b.top));

// The staircase along the front, as thin boxes.
function stairsOf(front: Point[], at: (point: Point) => readonly [number, number]): Box[] {
  return front.slice(1).flatMap((point, i) => {
    const [ax, ay] = at(front[i]!), [bx, by] = at(point);
    return [{ left: ax, top: ay - 2, width: bx - ax, height: 4 }, { left: bx - 2, top: ay, width: 4, height: by - ay }];
  });
}

// A place for the name of each point beside its mark, where it covers no mark, no other name and no line of the
// staircase; farther off where it must, or partly on one of these.
function placesOf(points: Point[], names: Map<Point, string>, at: (point: Point) => readonly [number, number], plot: Box): Map<Point, Box> {
  const marks = [...points.map((point): Box => ({ left: at(point)[0] - 7, top: at(point)[1] - 7, width: 14, height: 14 })), ...stairsOf([...names.keys()], at)];
  const placed = new Map<Point, Box>();
  for (const [point, name] of names) {
    const [px, py] = at(point), width = widthOf(name, 12, 700);
    let best: Box | null = null, least = Infinity;
    for (let off = 0; off <= 150 && least > 0; off += 10)
      for (const [left, top] of [[px + 10 + off, py - high / 2], [px + 6 + off, py - 8 - off - high], [px - 10 - off - width, py - high / 2], [px - width / 2, py - 10 - off - high], [px - width / 2, py + 10 + off], [px + 6 + off, py + 8 + off], [px - 6 - off - width, py - 8 - off - high], [px - 6 - off - width, py + 8 + off]] as const) {
        const box = { left: Math.min(Math.max(left, plot.left + 2), plot.left + plot.width - width), top, width, height: high };
        if (top < plot.top || top + high > plot.top + plot.height) continue;
        const covered = [...placed.values()].reduce((sum, other) => sum + 10 * overlap(box, other), 0) + marks.reduce((sum, mark) => sum + overlap(box, mark), 0);
        if (covered < least) [best, least] = [box, covered];
      }
    placed.set(point, best ?? { left: plot.left + 2, top: plot.top, width, height: high });
  }
  return placed;
}

function Drawing({ look, pointed, ...drawn }: Drawn & { look: Look; pointed?: Point["engine"] | null }) {
  const { points, front, cost: { name, label } } = drawn;
  const { x, y } = axesOf(drawn);
  const at = (point: Point) => [x.at(point[name]!), y.at(point.time)] as const;
  const plot = { left: x.from, top: y.to - 8, width: x.to - x.from + 22, height: y.from - y.to + 4 };
  const places = placesOf(points, new Map(front.map((point) => [point, point.engine.name])), at, plot);
  const strong = (point: Point) => point.engine === pointed || point.engine === chosen.value;
  const ticks = apart(x.ticks().filter((tick) => Number.isInteger(tick)), (tick) => x.at(tick), (tick) => widthOf(show(tick), 11));
  // The least time at each cost or less, as a staircase along the front.
  const steps = front.map((point, i) => (i === 0 ? `M${at(point).map((v) => v.toFixed(1)).join(" ")}` : `H${at(point)[0].toFixed(1)}V${at(point)[1].toFixed(1)}`)).join("");
  return (
    <g font-family={font} font-size="11">
      {apart([...y.ticks()].reverse(), (tick) => y.at(tick), () => 10).map((tick) => (
        <g key={tick}>
          <line x1={x.from} x2={x.to} y1={y.at(tick)} y2={y.at(tick)} stroke={look.line} />
          <text x={x.from - 6} y={y.at(tick) + 4} text-anchor="end" fill={look.soft} data-tick="y">{format.time(tick, 3)}</text>
        </g>
      ))}
      {ticks.map((tick) => (
        <g key={tick}>
          <line x1={x.at(tick)} x2={x.at(tick)} y1={y.from} y2={y.from + 4} stroke={look.soft} />
          <text x={x.at(tick)} y={y.from + 17} text-anchor="middle" fill={look.soft} data-tick="x">{show(tick)}</text>
        </g>
      ))}
      <line x1={x.from} x2={x.to} y1={y.from} y2={y.from} stroke={look.soft} />
      <text x={(x.from + x.to) / 2} y={y.from + 34} text-anchor="middle" fill={look.soft}>{`${label}; both axes logarithmic`}</text>
      <path d={steps} fill="none" stroke={look.soft} stroke-width="1.5" stroke-dasharray="4 3" />
      {points.map((point) => {
        const [px, py] = at(point), onFront = front.includes(point), { engine } = point;
        return (
          <g key={engine.name} opacity={onFront || strong(point) ? 1 : 0.6}>
            <Mark hollow={engine === automatic} shape={engine === automatic ? 0 : markOfEngine(engine)} x={px} y={py} r={strong(point) ? 6 : onFront ? 4.6 : 3.2} colour={colourOfEngine(engine, look.theme, look.ink)} paper={look.paper} edge={onFront ? look.ink : undefined} />
          </g>
        );
      })}
      {front.map((point) => {
        const { left, top, width, height } = places.get(point)!, [px, py] = at(point);
        const nearX = Math.min(Math.max(px, left), left + width), nearY = Math.min(Math.max(py, top), top + height);
        return (
          <g key={point.engine.name}>
            {Math.hypot(nearX - px, nearY - py) > 16 && <path d={`M${px.toFixed(1)} ${py.toFixed(1)}L${nearX.toFixed(1)} ${nearY.toFixed(1)}`} stroke={look.strong} stroke-width="0.75" />}
            <text x={left + 1} y={top + 11} font-size="12" font-weight={strong(point) ? 700 : 400} fill={colourOfEngine(point.engine, look.theme, look.ink)} stroke={look.paper} stroke-width="3" paint-order="stroke" font-style={point.engine === automatic ? "italic" : undefined} data-engine={point.engine.name}>{point.engine.name}</text>
          </g>
        );
      })}
    </g>
  );
}

const nothing = "No plan of this size has this number.";

export function TradeOff() {
  const box = useRef<SVGSVGElement>(null);
  const width = useSignal(0);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => (width.value = Math.round(entry!.contentRect.width)));
    observer.observe(box.current!.parentElement!);
    return () => observer.disconnect();
  }, []);
  const by = cost.value!, size = sizes[cursor.value]!;
  const points = plansAt(size).filter((point) => point[by.name] !== null && point.time > 0);
  const front = frontOf(points, by.name);
  const height = Math.max(300, front.length * high + 80);
  const drawn: Drawn = { points, front, cost: by, width: width.value, height };
  const nearest = (event: PointerEvent | MouseEvent): Point | null => {
    const label = (event.target as Element).getAttribute("data-engine");
    if (label) return points.find(({ engine }) => engine.name === label) ?? null;
    const { left, top } = box.current!.getBoundingClientRect();
    const { x, y } = axesOf(drawn);
    const distance = (point: Point) => Math.hypot(x.at(point[by.name]!) - (event.clientX - left), y.at(point.time) - (event.clientY - top));
    const best = points.reduce<Point | null>((least, point) => (least && distance(least) <= distance(point) ? least : point), null);
    return best && distance(best) < 60 ? best : null;
  };
  const title = `Time against ${by.name} at ${format.size(size)}`;
  const save = (kind: "svg" | "png") => saveDrawing(title, by.name, <Drawing {...drawn} width={560} height={height} look={print} />, 560, height, kind);
  return (
    <section class="card chart" aria-labelledby="title-tradeoff">
      <div class="card-head">
        <h2 id="title-tradeoff">{title}</h2>
        <span class="buttons">
          {costs.length > 1 && costs.map((each) => <button key={each.name} class="small" aria-pressed={each === by} onClick={() => (cost.value = each)}>{each.name}</button>)}
          <button class="small" aria-label="Trade-off as SVG" onClick={() => save("svg")}>SVG</button>
          <button class="small" aria-label="Trade-off as PNG" onClick={() => save("png")}>PNG</button>
        </span>
      </div>
      <div class="plot">
        <svg ref={box} width={width.value} height={height} role="img" aria-label={`${title} of ${format.counted(points.length, "plan")}; on the front: ${front.map((point) => point.engine.name).join(", ")}. The tables below have the same numbers.`}
          onPointerMove={(event) => {
            const point = nearest(event);
            pointed.value = point?.engine ?? null;
            if (point) showTooltip(event, linesOf(point));
            else hideTooltip();
          }}
          onPointerLeave={() => {
            pointed.value = null;
            hideTooltip();
          }}
          onClick={(event) => {
            const point = nearest(event);
            if (point) choose(point.engine);
          }}>
          {width.value > 0 && points.length > 0 && <Drawing {...drawn} look={lookNow()} pointed={pointed.value} />}
        </svg>
      </div>
      <p class="soft said" role="status" aria-label="Front">{points.length === 0 ? nothing : <>On the front, which no other plan equals or beats in both: {front.map((point, i) => <span key={point.engine.name}>{i > 0 ? "; " : ""}<b>{nameOf(point)}</b> {format.count(point[by.name]!)} and {format.time(point.time)}</span>)}</>}</p>
    </section>
  );
}
