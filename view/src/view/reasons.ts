// The answer to "why is it not faster", in sentences made from the plan's numbers.
import * as format from "../shared/format";
import type { CriticalData } from "./data";
import type { Model } from "./model";
import { kindName, pieceName } from "./words";

export interface Share {
  kind: string;
  place: string;
  link: number;
  rank: number;
  ps: number;
  pieces: number;
}

// The parts of a critical path by kind and place, longest first.
export function sharesOf(model: Model, path: CriticalData): Share[] {
  const found = new Map<string, Share>();
  for (let i = 0; i < path.kind.length; i++) {
    const place = pieceName(model, path, i);
    const key = path.kind[i]! + place;
    const share = found.get(key) ?? { kind: path.kind[i]!, place, link: path.link[i]!, rank: path.rank[i]!, ps: 0, pieces: 0 };
    share.ps += path.end[i]! - path.start[i]!;
    share.pieces++;
    found.set(key, share);
  }
  return [...found.values()].sort((a, b) => b.ps - a.ps);
}

// Picoseconds of a critical path by kind, in the order of the legend.
export function kindsOf(path: CriticalData): { letter: string; name: string; ps: number }[] {
  return [..."baothwl"]
    .map((letter) => {
      let ps = 0;
      for (let i = 0; i < path.kind.length; i++) if (path.kind[i] === letter) ps += path.end[i]! - path.start[i]!;
      return { letter, name: kindName(letter), ps };
    })
    .filter(({ ps }) => ps > 0);
}

export function reasonsOf(model: Model): string[] {
  return [boundReason(model), busyReason(model), programReason(model)].filter((text) => text !== "");
}

function boundReason(model: Model): string {
  const { facts } = model.data;
  if (facts.bound_ps === 0) return "Nothing has to be moved.";
  const alone = facts.latency_ps >= facts.bandwidth_ps ? "Latency sets" : "Bandwidth sets";
  const what = facts.bound_kind === "flow-over-time" ? "Latency and bandwidth together set" : alone;
  if (facts.meets_bound) return `${what} the lower bound, and the schedule meets it: on these links none is faster.`;
  const ratio = facts.time_ps / facts.bound_ps;
  if (ratio < 1.02) return `${what} the lower bound. The schedule takes ${format.percent(ratio - 1)} longer.`;
  return `${what} the lower bound. The schedule takes ${format.significant(ratio, 3)} times as long.`;
}

function busyReason(model: Model): string {
  const link = model.usedLinks[0];
  if (link === undefined) return "";
  const load = model.loadTotal(link);
  const { bandwidth } = model.data.topology.links;
  const alike = model.usedLinks.filter((l) => bandwidth[l] === bandwidth[link] && model.loadTotal(l) > load - 0.01).length;
  const which = alike > 1 ? `The ${format.count(alike)} busiest links, of ${format.bandwidth(bandwidth[link]!)} each, carry` : `The busiest link, ${model.linkName(link)} of ${format.bandwidth(bandwidth[link]!)}, carries`;
  const advice = load > 0.95 ? ": only wider links or fewer bytes help." : `; the rest of it ${alike > 1 ? "they wait" : "it waits"}.`;
  return `${which} bytes ${format.percent(load)} of the schedule's time${advice}`;
}

function programReason(model: Model): string {
  const { facts } = model.data;
  if (facts.program_time_ps === null || facts.time_ps === 0) return "";
  const ratio = facts.program_time_ps / facts.time_ps;
  const where = facts.machine_source ? `By the model of its machine (${facts.machine_source}) the` : "The";
  return ratio < 1.02 ? `${where} program takes as long as the schedule.` : `${where} program takes ${format.significant(ratio, 3)} times as long as the schedule.`;
}
