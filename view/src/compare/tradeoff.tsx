// Time against what a plan costs beside it, messages or threadblocks, at the size that is read off. The front is what no
// other plan equals or beats in both. All plans count, shown in the other charts or not.
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import * as format from "../shared/format";
import { lookNow, print, type Look } from "../shared/look";
import { hideTooltip, showTooltip } from "../shared/tooltip";
import { Axis, bottomMargin, font, labelStep, longest, spread } from "./chart";
import { linesOf, nameOf } from "./said";
import { saveDrawing } from "./figure";
import { choose, chosen, colourOfEngine, cost, costs, cursor, frontOf, plansAt, pointed, sizes, type Cost, type Point } from "./state";

interface Drawn {
  points: Point[];
  front: Point[];
  cost: Cost;
  width: number;
  height: number;
}

function axesOf({ points, cost: { name }, width, height }: Drawn) {
  const right = width - Math.min(longest(points.map(({ engine }) => engine)) * 6.4 + 22, width * 0.42);
  return {
    x: new Axis(points.map((point) => point[name]!), 62, right),
    y: new Axis(points.map(({ time }) => time), height - bottomMargin - 16, 10),
  };
}

// Counts are whole: 2.5 messages are no tick.
const show = (value: number) => format.count(Math.round(value));

function Drawing({ look, pointed, ...drawn }: Drawn & { look: Look; pointed?: Point["engine"] | null }) {
  const { points, front, cost: { name, label } } = drawn;
  const { x, y } = axesOf(drawn);
  const at = (point: Point) => [x.at(point[name]!), y.at(point.time)] as const;
  const labelled = [...front].sort((a, b) => b.time - a.time);
  const places = spread(labelled.map((point) => at(point)[1]), 14, y.from);
  const strong = (point: Point) => point.engine === pointed || point.engine === chosen.value;
  let last = -Infinity;
  const ticks = x.ticks().filter((tick) => {
    if (tick < 1 || x.at(tick) - last < 44) return false;
    last = x.at(tick);
    return true;
  });
  // The least time at each cost or less, as a staircase along the front.
  const steps = front.map((point, i) => (i === 0 ? `M${at(point).map((v) => v.toFixed(1)).join(" ")}` : `H${at(point)[0].toFixed(1)}V${at(point)[1].toFixed(1)}`)).join("");
  return (
    <g font-family={font} font-size="11">
      {y.ticks().map((tick) => (
        <g key={tick}>
          <line x1={x.from} x2={x.to} y1={y.at(tick)} y2={y.at(tick)} stroke={look.line} />
          <text x={x.from - 6} y={y.at(tick) + 4} text-anchor="end" fill={look.soft}>{format.time(tick, 3)}</text>
        </g>
      ))}
      {ticks.map((tick) => (
        <g key={tick}>
          <line x1={x.at(tick)} x2={x.at(tick)} y1={y.from} y2={y.from + 4} stroke={look.soft} />
          <text x={x.at(tick)} y={y.from + 17} text-anchor="middle" fill={look.soft}>{show(tick)}</text>
        </g>
      ))}
      <line x1={x.from} x2={x.to} y1={y.from} y2={y.from} stroke={look.soft} />
      <text x={(x.from + x.to) / 2} y={y.from + 34} text-anchor="middle" fill={look.soft}>{label}</text>
      <path d={steps} fill="none" stroke={look.soft} stroke-width="1.5" stroke-dasharray="4 3" />
      {points.map((point) => {
        const [px, py] = at(point), onFront = front.includes(point);
        return <circle key={point.engine.name} cx={px} cy={py} r={strong(point) ? 6.5 : onFront ? 5 : 3.5} fill={colourOfEngine(point.engine, look.theme, look.ink)} fill-opacity={onFront || strong(point) ? 1 : 0.55} stroke={onFront ? look.ink : look.paper} stroke-width="1.5" />;
      })}
      {labelled.map((point, i) => {
        const [px, py] = at(point), colour = colourOfEngine(point.engine, look.theme, look.ink);
        return (
          <g key={point.engine.name}>
            <path d={`M${(px + 7).toFixed(1)} ${py.toFixed(1)}L${x.to + 2} ${py.toFixed(1)}L${x.to + 14} ${places[i]!.toFixed(1)}`} fill="none" stroke={colour} stroke-opacity="0.4" />
            <text x={x.to + 18} y={places[i]! + 4} font-size="12" font-weight={strong(point) ? 700 : 400} fill={colour} data-engine={point.engine.name}>{format.shortened(point.engine.name, Math.floor((drawn.width - x.to - 14) / 6.4))}</text>
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
  const height = Math.max(280, front.length * labelStep + 70);
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
