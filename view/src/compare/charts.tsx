// The three charts and their controls. An engine that is pointed at in one chart stands out in all.
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import * as format from "../shared/format";
import { hideTooltip, showTooltip } from "../shared/tooltip";
import { lookNow } from "../shared/look";
import { BarChart, LineChart, barsHeight, barsOf, chartHeight, plotOf } from "./chart";
import type { EngineData } from "./data";
import { saveFigure } from "./figure";
import { automatic, choose, chosen, costs, cursor, data, groups, measures, one, pointAt, pointed, several, shown, shownGroups, sizes, toggleGroup, type Measure, type Point } from "./state";
import { linesOf, nameOf } from "./said";
import { TradeOff } from "./tradeoff";

function Chart({ measure }: { measure: Measure }) {
  const box = useRef<SVGSVGElement>(null);
  const width = useSignal(0);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => (width.value = Math.round(entry!.contentRect.width)));
    observer.observe(box.current!.parentElement!);
    return () => observer.disconnect();
  }, []);
  const engines = shown.value;
  const height = one ? barsHeight(engines, sizes[0]!, width.value) : chartHeight(engines, width.value);
  const drawn = { measure, engines, sizes, width: width.value, height };

  // The point that is nearest to the pointer; a label counts as its line's end.
  const nearest = (event: PointerEvent | MouseEvent): Point | null => {
    const label = (event.target as Element).closest("[data-engine]")?.getAttribute("data-engine");
    const { left, top } = box.current!.getBoundingClientRect();
    const px = event.clientX - left, py = event.clientY - top;
    if (one) {
      return barsOf(engines, sizes[0]!, width.value).bars.find(({ bottom }) => py < bottom)?.point ?? null;
    }
    const { x, y } = plotOf(drawn);
    const size = sizes.reduce((best, s) => (Math.abs(x.at(s) - px) < Math.abs(x.at(best) - px) ? s : best));
    if (label) return pointAt(engines.find(({ name }) => name === label)!, size) ?? null;
    const candidates = engines.flatMap((engine) => pointAt(engine, size) ?? []);
    const distance = (point: Point) => Math.abs(y.at(measure.value(point)) - py) + (point.engine === automatic ? 0.5 : 0);
    return candidates.length === 0 || px > x.to + 8 ? null : candidates.reduce((best, point) => (distance(point) < distance(best) ? point : best));
  };
  const onMove = (event: PointerEvent) => {
    const point = nearest(event);
    pointed.value = point?.engine ?? null;
    if (!point) return hideTooltip();
    cursor.value = sizes.indexOf(point.size);
    showTooltip(event, linesOf(point));
  };
  return (
    <section class="card chart" aria-labelledby={`title-${measure.name}`}>
      <div class="card-head">
        <h2 id={`title-${measure.name}`}>{measure.title}{!one && <span class="soft axes"> both axes logarithmic</span>}</h2>
        <span class="buttons">
          <button class="small" aria-label={`${measure.title} as SVG`} onClick={() => saveFigure([measure], "svg")}>SVG</button>
          <button class="small" aria-label={`${measure.title} as PNG`} onClick={() => saveFigure([measure], "png")}>PNG</button>
        </span>
      </div>
      <div class="plot">
        <svg ref={box} width={width.value} height={height} role="img" aria-label={`${measure.title} of ${format.counted(engines.length, several ? "line" : "engine")} over ${format.counted(sizes.length, "size")}. The tables below have the same numbers.`}
          onPointerMove={onMove}
          onPointerLeave={() => {
            pointed.value = null;
            hideTooltip();
          }}
          onClick={(event) => {
            const point = nearest(event);
            if (point) choose(point.engine);
          }}>
          {width.value > 0 && (one
            ? <BarChart {...drawn} look={lookNow()} chosen={chosen.value} pointed={pointed.value} />
            : <LineChart {...drawn} look={lookNow()} chosen={chosen.value} pointed={pointed.value} cursor={sizes[cursor.value]!} />)}
        </svg>
      </div>
    </section>
  );
}

// The values of the charts at the size of the cursor, in words.
function Readout() {
  const size = sizes[cursor.value]!;
  const of = several && !chosen.value ? shown.value : [automatic, chosen.value].filter((engine): engine is EngineData => !!engine);
  const said = of.flatMap((engine) => pointAt(engine, size) ?? []).sort((a, b) => (several ? a.time - b.time : 0)).slice(0, 4);
  return (
    <p class="soft" role="status">
      {format.size(size)}: {said.length === 0 ? "no plan" : said.map((point, i) => (
        <span key={point.engine.name}>{i > 0 ? "; " : ""}<b>{nameOf(point)}</b> {format.time(point.time)}, {format.bandwidth(point.busbw)}, {format.significant(point.ratio, 3)}{"\u00a0\u00d7"}&nbsp;bound</span>
      ))}
    </p>
  );
}

export function Charts() {
  return (
    <>
      <section class="card controls" aria-label="What the charts show">
        <div class="tools" role="group" aria-label="Lines shown">
          <span class="soft">Show</span>
          {groups.map((group) => (
            <button key={group.name} aria-pressed={shownGroups.value.has(group.name)} title={group.engines.map(({ name }) => name).join(", ")} onClick={() => toggleGroup(group.name)}>
              {group.label} ({group.engines.length})
            </button>
          ))}
        </div>
        <div class="tools">
          <label class="inline">
            <span>Stand out</span>
            <select value={chosen.value?.name ?? ""} onChange={(e) => (chosen.value = data.engines.find(({ name }) => name === e.currentTarget.value) ?? null)}>
              <option value="">none</option>
              {data.engines.filter((engine) => engine !== automatic).map(({ name }) => <option key={name} value={name}>{name}</option>)}
            </select>
          </label>
          {!one && (
            <label class="inline">
              <span>Size</span>
              <input type="range" min={0} max={sizes.length - 1} value={cursor.value} aria-label="Size" aria-valuetext={format.size(sizes[cursor.value]!)} onInput={(e) => (cursor.value = Number(e.currentTarget.value))} />
            </label>
          )}
          <span class="inline">
            <span>All charts</span>
            <button onClick={() => saveFigure(measures, "svg")}>SVG</button>
            <button onClick={() => saveFigure(measures, "png")}>PNG</button>
          </span>
        </div>
        <Readout />
      </section>
      <div class="charts">{measures.map((measure) => <Chart key={measure.name} measure={measure} />)}</div>
      {costs.length > 0 && <TradeOff />}
    </>
  );
}
