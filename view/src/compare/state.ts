// The comparison, and what the reader has chosen to see of it.
import { computed, signal } from "@preact/signals";
import { categories } from "../shared/colours";
import * as format from "../shared/format";
import { readPageData } from "../shared/page_data";
import type { Theme } from "../shared/theme";
import type { ComparisonData, EngineData, NamedMachine } from "./data";

export const data = readPageData<ComparisonData>();
export const sizes = [...new Set(data.engines.flatMap((engine) => engine.size_bytes))].sort((a, b) => a - b);
export const automatic = data.engines.find((engine) => engine.group === "auto");
export const machines: NamedMachine[] = "machines" in data ? data.machines : [{ name: data.topology.name, ranks: data.ranks, machine: data.machine, topology: data.topology, drawing: data.drawing }];
export const several = machines.length > 1; // lines are machines
export const one = sizes.length === 1;
const others = data.engines.filter((engine) => engine !== automatic);
const simulated = others.filter((engine) => !engine.measured);
export const front = others.filter((engine) => engine.on_front);

// One engine at one size.
export interface Point {
  engine: EngineData;
  size: number;
  time: number;
  busbw: number;
  bound: number;
  ratio: number; // time over bound
  slower: number; // time over that of the fastest plan
  madeBy: string;
  messages: number | null;
  threadblocks: number | null;
}
const fastestAt = new Map<number, number>();
for (const engine of data.engines.filter(({ measured }) => !measured))
  engine.size_bytes.forEach((size, i) => fastestAt.set(size, Math.min(fastestAt.get(size) ?? Infinity, engine.time_ps[i]!)));
export const points: Point[] = data.engines
  .flatMap((engine) => engine.size_bytes.map((size, i): Point => {
    const time = engine.time_ps[i]!, bound = engine.bound_ps[i]!;
    return { engine, size, time, bound, busbw: engine.busbw[i]!, ratio: bound > 0 ? time / bound : 1, slower: time / (fastestAt.get(size)! || 1), madeBy: engine.made_by[i]!, messages: engine.messages[i] ?? null, threadblocks: engine.threadblocks[i] ?? null };
  }))
  .sort((a, b) => a.size - b.size || a.time - b.time);
const byEngine = new Map<EngineData, Point[]>();
for (const point of points) byEngine.set(point.engine, [...(byEngine.get(point.engine) ?? []), point]);
export const pointsOf = (engine: EngineData) => byEngine.get(engine) ?? [];
export const pointAt = (engine: EngineData, size: number) => pointsOf(engine).find((point) => point.size === size);

export interface Measure {
  name: string;
  title: string;
  value: (point: Point) => number;
  show: (value: number) => string;
}
export const measures: Measure[] = [
  { name: "time", title: "Time", value: (point) => point.time, show: (value) => format.time(value, 3) },
  { name: "busbw", title: "Bus bandwidth", value: (point) => point.busbw, show: (value) => format.bandwidth(value, 3) },
  { name: "ratio", title: "Time \u00f7 lower bound", value: (point) => point.ratio, show: (value) => format.significant(value, 3) },
];

// Groups that can be switched on. auto is always shown.
export interface Group {
  name: string;
  label: string;
  engines: EngineData[];
}
export const groups: Group[] = [
  ...(one || several ? [] : [{ name: "leads", label: "Fastest at a size", engines: simulated.filter((engine) => engine.leads) }, { name: "front", label: "Front", engines: front }]),
  ...data.groups.filter(({ name }) => name !== "auto").map(({ name, label }) => ({ name, label, engines: others.filter((engine) => engine.group === name) })),
].filter((group) => group.engines.length > 0);
const few = 7; // lines beside auto that are all shown at first; rows are, however many
export const atFirst: ReadonlySet<string> = new Set(others.length <= few || one ? data.groups.map(({ name }) => name) : several ? ["machines"] : ["leads", "measured"]);
export const shownGroups = signal(atFirst);
export function toggleGroup(name: string) {
  const next = new Set(shownGroups.value);
  if (!next.delete(name)) next.add(name);
  shownGroups.value = next;
}

// The engine that the reader lets stand out.
export const chosen = signal<EngineData | null>(null);
export function choose(engine: EngineData) {
  chosen.value = chosen.value === engine || engine === automatic ? null : engine;
}
export const pointed = signal<EngineData | null>(null); // under the pointer
export const cursor = signal(sizes.length - 1); // the size that is read off

export const shown = computed(() =>
  data.engines.filter((engine) =>
    engine === automatic || engine === chosen.value || groups.some((group) => shownGroups.value.has(group.name) && group.engines.includes(engine))));

// Six colours for leading engines, machines and measured lines, or for all engines where there are few; ink for auto
// alone; the accent for a chosen engine without a colour; grey for all other engines. Marks differ too.
const coloured = others.length <= 6 ? others : others.filter((engine) => engine.leads || engine.measured || engine.group === "machines").slice(0, 6);
export function colourOfEngine(engine: EngineData, theme: Theme, ink: string): string {
  const at = coloured.indexOf(engine);
  if (at >= 0) return categories[theme][order[at]!]!;
  if (engine === automatic) return ink;
  return categories[theme][engine === chosen.value ? 5 : 7]!;
}
const order = [0, 1, 2, 3, 6, 4]; // neighbours are far apart
const markedFirst = [...coloured, ...others.filter((engine) => !coloured.includes(engine))];
export const markOfEngine = (engine: EngineData) => markedFirst.indexOf(engine);

export const title = several ? `${data.collective} on ${format.counted(machines.length, "machine")}` : `${data.collective} on ${machines[0]!.name}`;
export const timesOf = (machine: string) => (machine ? `programs on ${machine}` : "schedules on ideal links: bandwidths and latencies alone");
export const timesAreOf = machines.every(({ machine }) => machine === machines[0]!.machine)
  ? timesOf(machines[0]!.machine)
  : machines.map(({ name, machine }) => `${name}: ${timesOf(machine)}`).join("; ");

// A cost of a plan beside its time. The trade-off shows the time over one of the costs.
export interface Cost {
  name: "messages" | "threadblocks";
  label: string;
}
export const costs: Cost[] = ([{ name: "messages", label: "messages" }, { name: "threadblocks", label: "threadblocks of a rank" }] as Cost[])
  .filter(({ name }) => points.some((point) => point[name] !== null));
export const cost = signal<Cost | null>(costs[0] ?? null);

// The plans of a size. auto's is that of another engine, where that one is compared.
export function plansAt(size: number): Point[] {
  const found = simulated.flatMap((engine) => pointAt(engine, size) ?? []);
  const best = automatic && pointAt(automatic, size);
  return best && !found.some(({ engine }) => engine.name === best.madeBy) ? [best, ...found] : found;
}

// The Pareto front of the points by cost and time, ordered by cost: the points that no other point equals or beats in
// both. Where points are equal, the first is kept. Requires: the cost of each point is known.
export function frontOf(some: Point[], name: Cost["name"]): Point[] {
  let least = Infinity;
  return [...some].sort((a, b) => a[name]! - b[name]! || a.time - b.time).filter((point) => point.time < least && ((least = point.time), true));
}
