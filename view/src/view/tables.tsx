// The facts behind the drawings as tables: they sort, filter, and are saved as CSV.
import { useMemo } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { saveText } from "../shared/download";
import * as format from "../shared/format";
import { asList } from "./model";
import { index, model, planIndex, seek, toggleFollow } from "./state";

interface Column<Row> {
  name: string;
  text?: boolean;
  value: (row: Row) => number | string; // sorts, and goes into the CSV
  show?: (row: Row) => string;
  click?: (row: Row) => void;
}

function Table<Row>({ rows, columns, caption, file, start }: { rows: Row[]; columns: Column<Row>[]; caption: string; file: string; start: number }) {
  const by = useSignal(start);
  const descending = useSignal(true);
  const filter = useSignal("");
  const pages = useSignal(1);
  const column = columns[by.value]!;
  const text = (row: Row, c: Column<Row>) => (c.show ? c.show(row) : String(c.value(row)));
  const found = useMemo(() => {
    const wanted = filter.value.trim().toLowerCase();
    const kept = wanted ? rows.filter((row) => columns.some((c) => c.text && text(row, c).toLowerCase().includes(wanted))) : [...rows];
    const sign = descending.value ? -1 : 1;
    return kept.sort((a, b) => {
      const x = column.value(a), y = column.value(b);
      return sign * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true }));
    });
  }, [rows, filter.value, by.value, descending.value]);
  const most = 100 * pages.value;
  const csv = () => {
    const quote = (value: string | number) => (typeof value === "string" && /[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : String(value));
    saveText([columns.map((c) => quote(c.name)), ...found.map((row) => columns.map((c) => quote(c.value(row))))].map((r) => r.join(",")).join("\n") + "\n", "text/csv", file);
  };
  return (
    <>
      <div class="tools">
        <input type="search" class="filter" placeholder="filter" aria-label={`Filter ${caption}`} value={filter.value} onInput={(e) => (filter.value = e.currentTarget.value)} />
        <span class="soft" role="status">{format.count(found.length)} of {format.count(rows.length)}</span>
        <button onClick={csv}>CSV</button>
      </div>
      <div class="scroll tall" tabIndex={0} role="region" aria-label={caption}>
        <table>
          <caption class="unseen">{caption}</caption>
          <thead>
            <tr>
              {columns.map((c, i) => (
                <th key={c.name} class={c.text ? "text" : ""} aria-sort={by.value === i ? (descending.value ? "descending" : "ascending") : "none"}>
                  <button class="link sort" onClick={() => {
                    if (by.value === i) descending.value = !descending.value;
                    else {
                      by.value = i;
                      descending.value = !c.text;
                    }
                  }}>{c.name}<span class="arrow" aria-hidden="true">{by.value === i ? (descending.value ? " \u2193" : " \u2191") : ""}</span></button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {found.slice(0, most).map((row, i) => (
              <tr key={i}>
                {columns.map((c) => (
                  <td key={c.name} class={c.text ? "text" : ""}>{c.click ? <button class="link" onClick={() => c.click!(row)}>{text(row, c)}</button> : text(row, c)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {found.length > most && <button onClick={() => pages.value++}>Show {format.count(Math.min(100, found.length - most))} more</button>}
    </>
  );
}

export function LinkTable() {
  const current = model.value;
  const { topology, schedule } = current.data;
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
      const bytes = current.data.schedule.links.bytes[l]!;
      if (links.from[l] === node) out += bytes;
      else into += bytes;
      busy = Math.max(busy, current.loadTotal(l));
    }
    return { rank, name: current.nodeName(node), out, into, busy, degree: current.linksOfRank[rank]!.length };
  }), [current]);
  return (
    <Table rows={rows} caption="Ranks" file="ranks.csv" start={0} columns={[
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
  const detail = model.value.data.schedule.detail;
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
    <Table rows={rows} caption="Messages" file="messages.csv" start={0} columns={[
      { name: "step", value: (m) => detail.step[m]! },
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
    ["time of the schedule", `${format.time(facts.time_ps, 6)}, ${made.model} model, on ideal links: their bandwidths and latencies alone`],
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
