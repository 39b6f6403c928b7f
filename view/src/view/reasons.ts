// The answer to "why is it not faster", in sentences made from the plan's numbers.
import * as format from "../shared/format";
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

// The parts of the critical path by kind and place, longest first.
export function sharesOf(model: Model): Share[] {
  const { critical } = model.data;
  const found = new Map<string, Share>();
  for (let i = 0; i < critical.kind.length; i++) {
    const place = pieceName(model, i);
    const key = critical.kind[i]! + place;
    const share = found.get(key) ?? { kind: critical.kind[i]!, place, link: critical.link[i]!, rank: critical.rank[i]!, ps: 0, pieces: 0 };
    share.ps += critical.end[i]! - critical.start[i]!;
    share.pieces++;
    found.set(key, share);
  }
  return [...found.values()].sort((a, b) => b.ps - a.ps);
}

// Picoseconds of the critical path by kind, in the order of the legend.
export function kindsOf(model: Model): { letter: string; name: string; ps: number }[] {
  const { critical } = model.data;
  return [..."baothwl"]
    .map((letter) => {
      let ps = 0;
      for (let i = 0; i < critical.kind.length; i++) if (critical.kind[i] === letter) ps += critical.end[i]! - critical.start[i]!;
      return { letter, name: kindName(letter), ps };
    })
    .filter(({ ps }) => ps > 0);
}

export function reasonsOf(model: Model): string[] {
  return [boundReason(model), busyReason(model), pathReason(model), programReason(model)].filter((text) => text !== "");
}

function boundReason(model: Model): string {
  const { facts } = model.data;
  if (facts.bound_ps === 0) return "Nothing has to be moved.";
  const ratio = facts.time_ps / facts.bound_ps;
  const what = facts.latency_ps >= facts.bandwidth_ps ? "the latency of the longest way that data must go" : "the bandwidth that data must pass";
  if (facts.meets_bound) return `The schedule takes as long as the lower bound, which is set by ${what}: on these links no schedule is faster.`;
  return `The lower bound is set by ${what}; the schedule takes ${format.significant(ratio, 3)} times as long.`;
}

function busyReason(model: Model): string {
  const link = model.usedLinks[0];
  if (link === undefined) return "";
  const load = model.loadTotal(link);
  const { bandwidth } = model.data.topology.links;
  const alike = model.usedLinks.filter((l) => bandwidth[l] === bandwidth[link] && model.loadTotal(l) > load - 0.01).length;
  const which = alike > 1 ? `${format.count(alike)} links of ${format.bandwidth(bandwidth[link]!)} are` : `One link of ${format.bandwidth(bandwidth[link]!)}, ${model.linkName(link)}, is`;
  if (load > 0.95) return `${which} busy ${format.percent(load)} of the schedule's time: only wider links or fewer bytes help.`;
  return `The busiest links are idle ${format.percent(1 - load)} of the schedule's time: ${which[0]!.toLowerCase()}${which.slice(1)} busy for the rest.`;
}

function pathReason(model: Model): string {
  const [longest] = sharesOf(model);
  const total = model.data.critical.end.at(-1);
  if (!longest || !total) return "";
  const of = model.data.critical.of;
  return `The last arrival of the ${of} waits longest for ${kindName(longest.kind)}${longest.place ? ` at ${longest.place}` : ""}: ${format.time(longest.ps)}, ${format.percent(longest.ps / total)} of the time.`;
}

function programReason(model: Model): string {
  const { facts } = model.data;
  if (facts.program_time_ps === null || facts.time_ps === 0) return "";
  const ratio = facts.program_time_ps / facts.time_ps;
  const where = facts.machine_source ? ` on this machine (${facts.machine_source})` : "";
  if (ratio < 1.02) return `The program takes as long as the schedule${where ? ", within 2 %," : ", within 2 %"}${where}.`;
  return `The program takes ${format.significant(ratio, 3)} times as long as the schedule on ideal links${where}.`;
}
