// The draws as failures, and what the reader has chosen to see of them.
import { computed, signal } from "@preact/signals";
import { readPageData } from "../shared/page_data";
import type { FailuresData, TimesData } from "./data";

export const data = readPageData<FailuresData>();
export const sizes = [...new Set(data.times.map((row) => row.size_bytes))].sort((a, b) => a - b);
export const size = signal(sizes.at(-1)!);

// Engines at a size, auto first, then by mean time, as the data has them.
export const rowsAt = (bytes: number) => {
  const rows = data.times.filter((row) => row.size_bytes === bytes);
  return [...rows.filter(({ engine }) => engine === "auto"), ...rows.filter(({ engine }) => engine !== "auto")];
};
export const engines = [...new Set(sizes.flatMap((bytes) => rowsAt(bytes).map(({ engine }) => engine)))];
export const engine = signal(engines[0]!); // whose bars are drawn
export const pointed = signal<string | null>(null); // a failure

// A time is shown over the lower bound of the machine that is left, or over the engine's own time on the whole machine.
export type Over = "bound" | "own";
export const over = signal<Over>("bound");

// One failure with what it costs an engine. Draws of the same cables are one failure.
export interface Cost {
  draw: number;
  cables: string;
  row: TimesData;
  time: number | null; // picoseconds; null: no plan
  ratio: number | null; // time over the lower bound of the machine that is left; null: not known
  slowdown: number | null; // time over that on the whole machine; null: not known
  bound: number; // picoseconds
  least: number | null; // the lower bound over the time on the whole machine: no slowdown can be less
}
export const valueOf = (cost: Cost) => (over.value === "bound" ? cost.ratio : cost.slowdown);
export const leastOf = (cost: Cost) => (over.value === "bound" ? (cost.bound > 0 ? 1 : null) : cost.least);
const first = data.failed.flatMap((cables, draw) => (data.failed.indexOf(cables) === draw ? [draw] : []));
export const drawn = first.length;

export function costsOf(row: TimesData): Cost[] {
  const bounds = data.bounds.find(({ size_bytes }) => size_bytes === row.size_bytes)!;
  return first.map((draw) => {
    const us = row.draw_us[draw] ?? null;
    return {
      draw, row, cables: data.failed[draw]!,
      time: us === null ? null : us * 1e6,
      ratio: us !== null && bounds.draw_us[draw]! > 0 ? us / bounds.draw_us[draw]! : null,
      slowdown: us !== null && row.whole_us ? us / row.whole_us : null,
      bound: bounds.draw_us[draw]! * 1e6,
      least: row.whole_us ? bounds.draw_us[draw]! / row.whole_us : null,
    };
  });
}

export const current = computed(() => rowsAt(size.value).find((row) => row.engine === engine.value) ?? rowsAt(size.value)[0]!);
// The costliest first; a failure without a plan costs most.
export const sorted = computed(() => costsOf(current.value).sort((a, b) => (valueOf(b) ?? Infinity) - (valueOf(a) ?? Infinity) || a.draw - b.draw));
