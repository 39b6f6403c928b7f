// The answer to "why is it not faster", in sentences made from the plan's numbers.
import * as format from "../shared/format";
import type { CriticalData, Facts } from "./data";
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

// Says in words which bound sets the lower bound.
export function boundBy({ bound_kind: kind, latency_ps: latency, bandwidth_ps: bandwidth }: Facts): string {
  if (kind === "flow-over-time") return "latency and bandwidth together";
  return latency >= bandwidth ? "latency" : "bandwidth";
}

export function reasonsOf(model: Model): string[] {
  return [boundReason(model), decidesReason(model)].filter((text) => text !== "");
}

const first = (text: string) => text[0]!.toUpperCase() + text.slice(1);

function boundReason({ data: { facts } }: Model): string {
  if (facts.bound_ps === 0) return "Nothing has to be moved.";
  const isProgram = facts.program_time_ps !== null;
  const ratio = (facts.program_time_ps ?? facts.time_ps) / facts.bound_ps;
  const who = isProgram ? "program" : "schedule";
  const sets = `${first(boundBy(facts))} set${facts.bound_kind === "flow-over-time" ? "" : "s"} the lower bound`;
  if (!isProgram && facts.meets_bound) return `${sets}, and the schedule meets it: on these links none is faster.`;
  if (ratio < 1.0005) return `${sets}, and the ${who} meets it.`;
  return ratio < 1.02 ? `${sets}. The ${who} takes ${format.percent(ratio - 1)} longer.` : `${sets}. The ${who} takes ${format.significant(ratio, 3)} times as long.`;
}

// Says which kind of wait takes most of the time of the run that is played, and which change helps against it.
function decidesReason(model: Model): string {
  const { critical } = model;
  const total = critical.end.at(-1) ?? 0;
  if (total === 0) return "";
  const parts = kindsOf(critical).sort((a, b) => b.ps - a.ps);
  const most = parts[0]!, share = most.ps / total;
  const run = model.playsProgram ? "program" : "schedule";
  const bytes = parts.find(({ letter }) => letter === "b")?.ps ?? 0;
  const wide = most.letter === "b" ? "" : ` Wider links would shorten only the ${format.percent(bytes / total)} that are bytes on links.`;
  if (share < 0.5 && parts.length > 1)
    return `No single thing decides: the last arrival of the ${run} waits ${parts.slice(0, 3).map(({ name, ps }) => `${format.percent(ps / total)} for ${name}`).join(", ")}.`;
  return `${first(most.name)} decide${most.letter === "l" || most.letter === "a" || most.letter === "h" || most.letter === "o" ? "s" : ""}: the last arrival of the ${run} waits ${format.percent(share)} of the time for ${most.letter === "b" ? "them" : helpAgainst[most.letter]!.what}.${most.letter === "b" ? linksReason(model) : ` ${helpAgainst[most.letter]!.helps}${wide}`}`;
}

const helpAgainst: Record<string, { what: string; helps: string }> = {
  t: { what: "instructions that hold their threadblock", helps: "More threadblocks (`--max-ctas`), or fewer bytes through each, help." },
  a: { what: "the latency of links", helps: "Fewer steps one after the other, or shorter paths, help." },
  o: { what: "the fixed cost of messages on links", helps: "Fewer and larger messages help." },
  h: { what: "receivers to notice that a message is there", helps: "Fewer messages one after the other help." },
  w: { what: "one threadblock to go on after another of its GPU", helps: "Fewer dependencies between threadblocks help." },
  l: { what: "the kernel to start", helps: "No plan changes that." },
};

function linksReason(model: Model): string {
  const link = model.usedLinks[0];
  if (link === undefined) return "";
  const load = model.loadTotal(link);
  const { bandwidth } = model.data.topology.links;
  const alike = model.usedLinks.filter((l) => bandwidth[l] === bandwidth[link] && model.loadTotal(l) > load - 0.01).length;
  const which = alike > 1 ? ` The ${format.count(alike)} busiest links, of ${format.bandwidth(bandwidth[link]!)} each, carry` : ` The busiest link, ${model.linkName(link)} of ${format.bandwidth(bandwidth[link]!)}, carries`;
  const advice = load > 0.95 ? ": only wider links or fewer bytes help." : `; the rest of the time ${alike > 1 ? "they wait" : "it waits"}.`;
  return `${which} bytes ${format.percent(load)} of the ${model.playsProgram ? "program" : "schedule"}'s time${advice}`;
}

// The times of the schedule and of the machine's model, which stand in small print.
export function smallPrint({ data: { facts }, playsProgram }: Model): string[] {
  const noMachine = facts.no_machine ? [`${facts.no_machine[0]!.toUpperCase()}${facts.no_machine.slice(1)}.`] : [];
  if (facts.program_time_ps === null) return ["Times are of the schedule on ideal links: bandwidths and latencies alone.", ...noMachine];
  return [
    ...noMachine,
    facts.machine_source ? `Times are of the program by the model of its machine: ${facts.machine_source}.` : "Times are of the program on ideal links: bandwidths and latencies alone.",
    `On ideal links the schedule takes ${format.time(facts.time_ps)}${facts.bound_ps > 0 ? `, ${format.significant(facts.time_ps / facts.bound_ps, 4)} times the bound` : ""}.`,
    ...(playsProgram ? [] : ["The program is too large for the page: the machine and the timeline play the schedule on ideal links."]),
  ];
}
