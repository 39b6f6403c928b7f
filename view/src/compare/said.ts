// Points in words.
import * as format from "../shared/format";
import { costs, several, type Point } from "./state";

export const nameOf = (point: Point) => (point.engine.measured ? `${point.engine.name} (not simulated)` : several ? `${point.engine.name} (${point.madeBy})` : point.madeBy === point.engine.name ? point.engine.name : `${point.engine.name} (${point.madeBy})`);

export function linesOf(point: Point): string[] {
  return [
    nameOf(point),
    `${format.size(point.size)}: ${format.time(point.time)}, busbw ${format.bandwidth(point.busbw)}`,
    `${format.significant(point.ratio, 3)} times the bound, ${point.slower === 1 ? "the fastest" : `${format.significant(point.slower, 3)} times the fastest${point.engine.measured ? " plan" : ""}`}`,
    ...costs.flatMap(({ name, label }) => (point[name] === null ? [] : `${format.count(point[name])} ${label}`)),
  ];
}
