// The facts behind the drawings as tables: they sort, filter, and are saved as CSV.
import { useMemo } from "preact/hooks";
import * as format from "../shared/format";
import { Table } from "../shared/table";
import { asList } from "./model";
import { index, model, planIndex, seek, toggleFollow } from "./state";

export function LinkTable() {
  const current = model.value;
  const { topology } = current.data;
  const schedule = current.played;
  const rows = useMemo(() => [...Array(current.numLinks).keys()], [current]);
  return (
    <Table rows={rows} caption="Links" file="links.csv" start={1} columns={[
      { name: "link", text: true, value: (l) => current.linkName(l), click: (l) => toggleFollow({ kind: "link", link: l }) },
      { name: "busy", value: (l) => current.loadTotal(l), show: (l) => format.percent(current.loadTotal(l)) },
      { name: "bytes", value: (l) => schedule.links.bytes[l]!, show: (l) => format.size(schedule.links.bytes[l]!) },
      { name: "messages", value: (l) => schedule.links.messages[l]!, show: (l) => format.count(schedule.links.messages[l]!) },
      { name: "bandwidth", value: (l) => topology.links.bandwidth[l]!, show: (l) => format.bandwidth(topology.links.bandwidth[l]!) },
      { name: "latency", value: (l) => topology.links.latency[l]!, show: (l) => format.time(topology.links.latency[l]!) },
      { name: "critical", value: (l) => current.criticalLinks.get(l) ?? 0, show: (l) => (current.criticalLinks.has(l) ? format.time(current.criticalLinks.get(l)!) : "") },
    ]} />
  );
}

export function RankTable() {
  const current = model.value;
  const { links } = current.data.topology;
  const rows = useMemo(() => [...Array(current.numRanks).keys()].map((rank) => {
    const node = current.nodeOfRank[rank]!;
    let out = 0, into = 0, busy = 0;
    for (const l of current.linksOfRank[rank]!) {
      const bytes = current.played.links.bytes[l]!;
      if (links.from[l] === node) out += bytes;
      else into += bytes;
      busy = Math.max(busy, current.loadTotal(l));
    }
    return { rank, name: current.nodeName(node), out, into, busy, degree: current.linksOfRank[rank]!.length };
  }), [current]);
  return (
    <Table rows={rows} caption="Ranks" file="ranks.csv" start={0} ascending columns={[
      { name: "rank", value: (r) => r.rank, click: (r) => toggleFollow({ kind: "rank", rank: r.rank }) },
      { name: "node", text: true, value: (r) => r.name },
      { name: "bytes out", value: (r) => r.out, show: (r) => format.size(r.out) },
      { name: "bytes in", value: (r) => r.into, show: (r) => format.size(r.into) },
      { name: "busiest link", value: (r) => r.busy, show: (r) => format.percent(r.busy) },
      { name: "links", value: (r) => r.degree },
    ]} />
  );
}

export function MessageTable() {
  const detail = model.value.played.detail;
  const rows = useMemo(() => (detail ? [...detail.src.keys()] : []), [detail]);
  if (!detail) return <p class="soft">This plan has {format.count(model.value.data.facts.messages)} messages, too many for the page. <code>emit --to perfetto</code> and the plan file have them all.</p>;
  const chunks = (m: number) => {
    const all: number[] = [];
    for (let t = detail.transfer_first[m]!; t < detail.transfer_first[m + 1]!; t++)
      for (let c = 0; c < detail.count[t]! && all.length < 100; c++) all.push(detail.chunk[t]! + c);
    return format.ranges(all.sort((a, b) => a - b));
  };
  const ends = (value: number | number[]) => format.ranges([...asList(value)].sort((a, b) => a - b));
  return (
    <Table rows={rows} caption="Messages" file="messages.csv" start={detail.step ? 0 : 5} ascending columns={[
      ...(detail.step ? [{ name: "step", value: (m: number) => detail.step![m]! }] : []),
      { name: "from", text: true, value: (m) => ends(detail.src[m]!) },
      { name: "to", text: true, value: (m) => ends(detail.dst[m]!) },
      { name: "does", text: true, value: (m) => (detail.op[detail.transfer_first[m]!] === "r" ? "reduces" : "copies") },
      { name: "chunks", text: true, value: chunks },
      { name: "bytes", value: (m) => detail.bytes[m]!, show: (m) => format.size(detail.bytes[m]!) },
      { name: "starts", value: (m) => detail.start[m]!, show: (m) => format.time(detail.start[m]!), click: (m) => seek(detail.start[m]!) },
      { name: "arrives", value: (m) => detail.end[m]!, show: (m) => format.time(detail.end[m]!) },
    ]} />
  );
}

export function PlanFacts() {
  const { facts, made_by: made, collective, topology, program } = model.value.data;
  const summary = index.plans[planIndex.value]!;
  const lines: [string, string][] = [
    ["file", summary.name],
    ["collective", `${collective.name} of ${format.counted(collective.members.length, "rank")}${collective.root === null ? "" : `, root ${collective.root}`}`],
    ["size", format.size(facts.size_bytes)],
    ["engine", made.engine],
    ["schedule", `${format.counted(facts.steps, "step")}, ${format.counted(facts.transfers, "transfer")} in ${format.counted(facts.messages, "message")}, ${format.counted(collective.chunks, "chunk")} of ${format.counted(collective.parts, "part")}`],
    ["time of the schedule", `${format.time(facts.time_ps, 6)}, ${made.model} model, on ideal links: bandwidths and latencies alone`],
    ["time of the program", facts.program_time_ps === null ? "no program" : `${format.time(facts.program_time_ps, 6)}, ${facts.machine_source ? `on ${facts.machine_source}` : "on ideal links"}`],
    ["program", program ? `${program.protocol}, ${format.counted(program.instances, "instance")}, ${format.counted(program.passes, "pass", "passes")}` : "none"],
    ["bound", `${format.time(facts.bound_ps, 6)}: latency ${format.time(facts.latency_ps)}, bandwidth ${format.time(facts.bandwidth_ps)} by ${facts.bound_kind}`],
    ["bits", facts.bitwise_same === null ? "nothing claimed" : facts.bitwise_same ? "the same on every rank" : "may differ between ranks"],
    ["machine", `${topology.name}${topology.source ? `: ${topology.source}` : ""}`],
    ["made with", `xccl-synth ${made.version}, seed ${made.seed}${made.limits ? `, ${made.limits}` : ""}`],
    ["shown with", `xccl-synth ${index.version}: ${index.command}`],
  ];
  return <dl class="facts">{lines.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>;
}
