// The page of `compare --failures N --html`: which failure costs how much, and which engine copes best.
import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { savePng, saveSvg } from "../shared/download";
import * as format from "../shared/format";
import { Icon } from "../shared/icons";
import { HelpDialog, openHelp, useShortcuts, type Shortcut } from "../shared/keyboard";
import { lookNow, print } from "../shared/look";
import { MadeBy } from "../shared/made_by";
import { Machine } from "../shared/machine";
import { Table } from "../shared/table";
import { switchTheme, theme } from "../shared/theme";
import { Tooltip, hideTooltip, showTooltip } from "../shared/tooltip";
import { Lines, lineStep } from "../shared/lines";
import { wrapped } from "../shared/text";
import { Bars, heightOf, rowsOf } from "./chart";
import { costsOf, current, data, drawn, engine, engines, over, pointed, rowsAt, size, sizes, sorted, valueOf, type Cost, type Over } from "./state";

const times = (value: number) => `${value.toFixed(2)}\u00d7`;
const step = <T,>(list: T[], now: T, by: 1 | -1) => list[Math.min(Math.max(list.indexOf(now) + by, 0), list.length - 1)]!;
const around = <T,>(list: T[], now: T, by: 1 | -1) => list[(list.indexOf(now) + by + list.length) % list.length]!;

const shortcuts: Shortcut[] = [
  { keys: ["n"], shown: "N", does: "the next engine", run: () => (engine.value = around(engines, engine.value, 1)) },
  { keys: ["p"], shown: "P", does: "the engine before", run: () => (engine.value = around(engines, engine.value, -1)) },
  { keys: ["ArrowRight"], shown: "\u2192", does: "the next size", run: () => (size.value = step(sizes, size.value, 1)) },
  { keys: ["ArrowLeft"], shown: "\u2190", does: "the size before", run: () => (size.value = step(sizes, size.value, -1)) },
  { keys: ["b"], shown: "B", does: "times over the bound, or over the engine's own", run: () => (over.value = over.value === "bound" ? "own" : "bound") },
  { keys: ["t"], shown: "T", does: "switch between light and dark", run: switchTheme },
];

// Says in words which times the bars and the mark show.
const bars = () => (over.value === "bound" ? "time over the lower bound of the machine that is left, which the mark shows" : `time over that of ${current.value.engine} on the whole machine; the mark is the lower bound of the machine that is left`);
const heading = () => `What each failure costs ${current.value.engine} at ${format.size(size.value)}`;

function save(kind: "svg" | "png") {
  const width = 760, margin = 16, said = wrapped(`${data.collective} on ${data.topology.name}: ${bars()}`, width, 11), head = 62 + said.length * lineStep;
  const foot = wrapped(`xccl-synth ${data.version}: ${data.command}`, width, 10);
  const high = head + heightOf(sorted.value, width) + foot.length * lineStep + 12;
  const box = document.createElement("div");
  render(
    <svg xmlns="http://www.w3.org/2000/svg" width={width + 2 * margin} height={high} viewBox={`0 0 ${width + 2 * margin} ${high}`} role="img" font-family="Helvetica, Arial, sans-serif">
      <title>{heading()}</title>
      <rect width={width + 2 * margin} height={high} fill={print.paper} />
      <text x={margin} y="28" font-size="17" font-weight="700" fill={print.ink}>{heading()}</text>
      <Lines lines={said} x={margin} y={37 + (said.length * lineStep) / 2} font-size="11" fill={print.soft} />
      <g transform={`translate(${margin} ${head - 10})`}><Bars costs={sorted.value} look={print} width={width} /></g>
      <Lines lines={foot} x={margin} y={high - 6 - (foot.length * lineStep) / 2} font-size="10" fill={print.soft} />
    </svg>, box);
  const text = new XMLSerializer().serializeToString(box.firstElementChild!);
  const name = `${data.collective}-${data.topology.name}-failures`.replaceAll(/[^\w.-]+/g, "-");
  if (kind === "svg") saveSvg(text, `${name}.svg`);
  else void savePng(text, `${name}.png`);
}

function linesOf(cost: Cost): string[] {
  return [
    `${cost.cables} failed`,
    cost.time === null ? `${cost.row.engine}: no plan` : `${cost.row.engine}: ${format.time(cost.time)}${cost.slowdown === null ? "" : `, ${times(cost.slowdown)} its time on the whole machine`}`,
    `lower bound of the machine that is left: ${format.time(cost.bound)}`,
    ...(cost.ratio === null ? [] : [`time \u00f7 bound: ${cost.ratio.toFixed(2)}`]),
  ];
}

function Chart() {
  const box = useRef<SVGSVGElement>(null);
  const width = useSignal(0);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => (width.value = Math.round(entry!.contentRect.width)));
    observer.observe(box.current!.parentElement!);
    return () => observer.disconnect();
  }, []);
  const costs = sorted.value, worst = costs[0]!, height = heightOf(costs, width.value);
  const whole = current.value.whole_us;
  return (
    <section class="card chart" aria-labelledby="title-failures">
      <div class="card-head">
        <h2 id="title-failures">{heading()}</h2>
        <span class="buttons">
          <button class="small" onClick={() => save("svg")}>SVG</button>
          <button class="small" onClick={() => save("png")}>PNG</button>
        </span>
      </div>
      <div class="inside">
        <div class="tools">
          <label class="inline">
            <span>Engine</span>
            <select value={current.value.engine} onChange={(e) => (engine.value = e.currentTarget.value)}>
              {rowsAt(size.value).map((row) => <option key={row.engine} value={row.engine}>{row.engine}</option>)}
            </select>
          </label>
          <label class="inline">
            <span>Time over</span>
            <select value={over.value} onChange={(e) => (over.value = e.currentTarget.value as Over)}>
              <option value="bound">the bound of what is left</option>
              <option value="own">its own on the whole machine</option>
            </select>
          </label>
          {sizes.length > 1 && (
            <label class="inline">
              <span>Size</span>
              <select value={size.value} onChange={(e) => (size.value = Number(e.currentTarget.value))}>
                {sizes.map((bytes) => <option key={bytes} value={bytes}>{format.size(bytes)}</option>)}
              </select>
            </label>
          )}
        </div>
        <p class="soft said" role="status">
          {whole === null ? `${current.value.engine} has no plan for the whole machine.` : <><b>{current.value.engine}</b> takes {format.time(whole * 1e6)} on the whole machine. {valueOf(worst) === null ? <>With <b>{worst.cables}</b> failed it has no plan.</> : <>The costliest failure is <b>{worst.cables}</b>: {times(valueOf(worst)!)}{over.value === "bound" ? " the bound" : ""}.</>}</>} Bars: {bars()}.
        </p>
      </div>
      <div class="plot">
        <svg ref={box} width={width.value} height={height} role="img" aria-label={`${heading()}: ${format.counted(costs.length, "failure")}. The table below has the same numbers.`}
          onPointerMove={(event) => {
            const y = event.clientY - box.current!.getBoundingClientRect().top;
            const cost = rowsOf(costs, width.value).rows.find(({ bottom }) => y < bottom)?.cost;
            pointed.value = cost?.cables ?? null;
            if (cost) showTooltip(event, linesOf(cost));
            else hideTooltip();
          }}
          onPointerLeave={() => {
            pointed.value = null;
            hideTooltip();
          }}>
          {width.value > 0 && <Bars costs={costs} look={lookNow()} width={width.value} pointed={pointed.value} />}
        </svg>
      </div>
    </section>
  );
}

const mean = (list: number[]) => list.reduce((sum, value) => sum + value, 0) / list.length;

function Engines() {
  return (
    <section class="card" aria-labelledby="engines-title">
      <div class="card-head"><h2 id="engines-title">Engines at {format.size(size.value)}</h2></div>
      <div class="scroll" tabIndex={0} role="region" aria-labelledby="engines-title">
        <table>
          <thead><tr><th class="text">engine</th><th>whole machine</th><th>mean of failures</th><th>mean time &divide; bound</th><th>worst</th><th class="text">costliest failure</th><th>mean &divide; whole machine's</th><th>planned</th></tr></thead>
          <tbody>
            {rowsAt(size.value).map((row) => {
              const costs = costsOf(row);
              const planned = costs.filter(({ time }) => time !== null), known = costs.filter(({ ratio }) => ratio !== null), slower = costs.filter(({ slowdown }) => slowdown !== null);
              const worst = known.reduce<Cost | null>((most, cost) => (most && most.ratio! >= cost.ratio! ? most : cost), null);
              return (
                <tr key={row.engine}>
                  <th class="text" scope="row"><button class="link" onClick={() => (engine.value = row.engine)}>{row.engine}</button></th>
                  <td>{row.whole_us === null ? "\u2013" : format.time(row.whole_us * 1e6)}</td>
                  <td>{planned.length > 0 ? format.time(mean(planned.map(({ time }) => time!))) : "\u2013"}</td>
                  <td>{known.length > 0 ? mean(known.map(({ ratio }) => ratio!)).toFixed(2) : "\u2013"}</td>
                  <td>{worst ? worst.ratio!.toFixed(2) : "\u2013"}</td>
                  <td class="text">{worst?.cables ?? "\u2013"}</td>
                  <td>{slower.length > 0 ? times(mean(slower.map(({ slowdown }) => slowdown!))) : "\u2013"}</td>
                  <td>{planned.length} of {costs.length}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function All() {
  const rows = data.times.flatMap(costsOf);
  return (
    <section class="card rows" aria-labelledby="rows-title">
      <div class="card-head"><h2 id="rows-title">All times</h2></div>
      <div class="inside">
        <Table rows={rows} caption="All times" file="failures.csv" start={6} columns={[
          { name: "size", value: (c) => c.row.size_bytes, show: (c) => format.size(c.row.size_bytes) },
          { name: "failed", text: true, value: (c) => c.cables },
          { name: "engine", text: true, value: (c) => c.row.engine, click: (c) => (engine.value = c.row.engine) },
          { name: "whole machine", value: (c) => c.row.whole_us ?? "", show: (c) => (c.row.whole_us === null ? "\u2013" : format.time(c.row.whole_us * 1e6)) },
          { name: "time", value: (c) => (c.time === null ? "" : c.time / 1e6), show: (c) => (c.time === null ? "no plan" : format.time(c.time)) },
          { name: "\u00f7 whole machine's", value: (c) => c.slowdown ?? "", show: (c) => (c.slowdown === null ? "\u2013" : times(c.slowdown)) },
          { name: "time \u00f7 bound", value: (c) => c.ratio ?? "", show: (c) => (c.ratio === null ? "\u2013" : c.ratio.toFixed(2)) },
          { name: "lower bound", value: (c) => c.bound / 1e6, show: (c) => format.time(c.bound) },
        ]} />
      </div>
    </section>
  );
}

export function Page() {
  useShortcuts(shortcuts);
  useEffect(() => {
    document.title = `${data.title} \u2013 XCCL`;
  }, []);
  return (
    <>
      <header class="top">
        <div>
          <h1>{data.collective} on {data.topology.name} with failed cables</h1>
          <p class="soft">{data.title}; times of schedules on ideal links{drawn < data.failed.length ? `; ${format.counted(drawn, "different failure")}` : ""}</p>
        </div>
        <div class="buttons">
          <button onClick={openHelp} aria-haspopup="dialog">Keys</button>
          <button class="icon" onClick={switchTheme} aria-label={theme.value === "dark" ? "Light theme" : "Dark theme"} title="Light or dark (T)"><Icon name={theme.value === "dark" ? "sun" : "moon"} /></button>
        </div>
      </header>
      <main>
        <Chart />
        <Engines />
        <All />
        <Machine topology={data.topology} drawing={data.drawing} />
        <MadeBy command={data.command} version={data.version} leftOut={data.left_out} facts={[
          ["times", "simulated, of schedules on ideal links: bandwidths and latencies alone"],
          ["failures", "drawn from all cables of the machine, used by a plan or not"],
          ["replan", "auto's plan for the whole machine, repaired"],
          ["model", data.model],
        ]} />
      </main>
      <Tooltip />
      <HelpDialog shortcuts={shortcuts} />
    </>
  );
}
