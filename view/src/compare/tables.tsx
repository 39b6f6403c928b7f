// The comparison in tables: which engine for which size, the front or the machines, and every row.
import { useMemo } from "preact/hooks";
import { useSignal } from "@preact/signals";
import * as format from "../shared/format";
import { Table, type Column } from "../shared/table";
import type { EngineData } from "./data";
import { automatic, choose, chosen, costs, data, front, pointAt, points, several, sizes, type Point } from "./state";

const factor = (value: number) => (value < 10 ? value.toFixed(2) : format.significant(value, 3));

// Sizes in a row for which the same engine is the one to use.
interface Run {
  engine: string;
  from: Point;
  to: Point;
  best: number; // ratio to the bound
  worst: number;
}
function runs(of?: EngineData): Run[] {
  const found: Run[] = [];
  for (const size of sizes) {
    const point = of ? pointAt(of, size) : points.find((p) => p.size === size && !p.engine.measured);
    if (!point) continue;
    const last = found.at(-1);
    if (last?.engine === point.madeBy) Object.assign(last, { to: point, best: Math.min(last.best, point.ratio), worst: Math.max(last.worst, point.ratio) });
    else found.push({ engine: point.madeBy, from: point, to: point, best: point.ratio, worst: point.ratio });
  }
  return found;
}
const between = (a: string, b: string) => (a === b ? a : `${a} to ${b}`);

export function Answer() {
  const lines = several ? data.engines.filter(({ group }) => group === "machines") : [automatic];
  return (
    <section class="card" aria-labelledby="answer-title">
      <div class="card-head"><h2 id="answer-title">{automatic || several ? "What auto uses" : "The fastest"}</h2></div>
      <div class="scroll" tabIndex={0} role="region" aria-labelledby="answer-title">
        <table>
          <thead><tr>{several && <th class="text">machine</th>}<th class="text">size</th><th class="text">engine</th><th>time</th><th>bus bandwidth</th><th>{"time \u00f7 bound"}</th></tr></thead>
          <tbody>
            {lines.flatMap((of) => runs(of).map(({ engine, from, to, best, worst }, i) => (
              <tr key={`${of?.name} ${from.size}`}>
                {several && <td class="text">{i === 0 ? of!.name : ""}</td>}
                <td class="text">{between(format.size(from.size), format.size(to.size))}</td>
                <td class="text"><b>{engine}</b></td>
                <td>{between(format.time(from.time, 3), format.time(to.time, 3))}</td>
                <td>{between(format.bandwidth(from.busbw, 3), format.bandwidth(to.busbw, 3))}</td>
                <td>{between(factor(best), factor(worst))}</td>
              </tr>
            )))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

export function Front() {
  const all = several ? data.engines : [...front, ...data.engines.filter(({ measured }) => measured)];
  const rows: EngineData[] = [...all, ...(chosen.value && !all.includes(chosen.value) ? [chosen.value] : [])];
  return (
    <section class="card" aria-labelledby="front-title">
      <div class="card-head">
        <h2 id="front-title">{several ? "Machines" : "Front"}</h2>
        <p class="soft">{several ? "Cells: time over that of the fastest machine." : "Engines that no other one equals or beats at every size. Cells: time over that of the fastest plan."}</p>
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-labelledby="front-title">
        <table class="front">
          <thead><tr><th class="text">{several ? "machine" : "engine"}</th>{sizes.map((size) => <th key={size}>{format.size(size)}</th>)}</tr></thead>
          <tbody>
            {rows.map((engine) => (
              <tr key={engine.name}>
                <th class="text" scope="row"><button class="link" onClick={() => choose(engine)}>{engine.name}</button>{several || engine.on_front || engine.measured ? "" : " (not on it)"}</th>
                {sizes.map((size) => {
                  const point = pointAt(engine, size);
                  if (!point) return <td key={size}>{"\u2013"}</td>;
                  const strength = Math.max(0, Math.min(1, 1 - Math.log2(point.slower))) * 34;
                  return <td key={size} class={point.slower === 1 ? "first" : ""} style={{ background: `color-mix(in srgb, var(--accent) ${strength.toFixed(0)}%, transparent)` }}>{factor(point.slower)}</td>;
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

export function AllRows() {
  const size = useSignal<number | null>(null);
  const rows = useMemo(() => (size.value === null ? points : points.filter((point) => point.size === size.value)), [size.value]);
  const sizeFilter = (
    <select aria-label="Sizes" value={size.value ?? ""} onChange={(e) => (size.value = e.currentTarget.value ? Number(e.currentTarget.value) : null)}>
      <option value="">all sizes</option>
      {sizes.map((s) => <option key={s} value={s}>{format.size(s)}</option>)}
    </select>
  );
  return (
    <section class="card rows" aria-labelledby="rows-title">
      <div class="card-head"><h2 id="rows-title">All times</h2></div>
      <div class="inside">
        <Table rows={rows} caption="All times" file="compare.csv" start={0} ascending tools={sizeFilter} columns={[
          { name: "size", value: (p) => p.size, show: (p) => format.size(p.size) },
          { name: several ? "machine" : "engine", text: true, value: (p) => p.engine.name, click: (p) => choose(p.engine) },
          { name: "plan by", text: true, value: (p) => (p.engine.measured ? `${p.madeBy}, measured` : p.madeBy) },
          { name: "time", value: (p) => p.time / 1e6, show: (p) => format.time(p.time) },
          { name: "busbw", value: (p) => p.busbw / 1e9, show: (p) => format.bandwidth(p.busbw) },
          { name: "time \u00f7 bound", value: (p) => p.ratio, show: (p) => factor(p.ratio) },
          { name: "time \u00f7 fastest", value: (p) => p.slower, show: (p) => factor(p.slower) },
          ...costs.map(({ name }): Column<Point> => ({ name, value: (p) => p[name] ?? "", show: (p) => (p[name] === null ? "\u2013" : format.count(p[name])) })),
        ]} />
      </div>
    </section>
  );
}
