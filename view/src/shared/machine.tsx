// A machine that was compared on: its drawing and the speeds of its links.
import * as format from "./format";
import { linesOfItem } from "./text";
import type { DrawingData, TopologyData } from "../view/data";

interface Drawn {
  topology: TopologyData;
  drawing: DrawingData;
}

const kinds: Record<string, string> = { g: "GPU", s: "switch", n: "NIC", c: "CPU" };

function pathOf({ form, point, point_first: first }: DrawingData["cables"], cable: number): string {
  const at: string[] = [];
  for (let i = first[cable]!; i < first[cable + 1]!; i += 2) at.push(`${point[i]} ${point[i + 1]}`);
  if (form[cable] === "c") return `M${at[0]}Q${at[1]} ${at[2]}`;
  if (form[cable] === "s") return `M${at[0]}L${at[1]}M${at[2]}L${at[3]}`;
  return `M${at.join("L")}`;
}

function Picture({ topology, drawing }: Drawn) {
  const { width, height, items, frames, cables, shape } = drawing;
  return (
    <svg class="machine" viewBox={`-2 -2 ${width + 4} ${height + 4}`} style={{ maxWidth: `${1.4 * width}px` }} role="img" aria-label={`Drawing of ${topology.name}: ${shape}`}>
      {frames.label.map((label, i) => (
        <g key={i}>
          <rect class="frame" x={frames.left[i]} y={frames.top[i]} width={frames.width[i]} height={frames.height[i]} rx="8" />
          <text class="name" x={frames.label_x[i]} y={frames.label_y[i]! + 4}>{label}</text>
        </g>
      ))}
      <g class="cables">{[...cables.form].map((_, i) => <path key={i} d={pathOf(cables, i)} />)}</g>
      {[...items.kind].map((kind, i) => {
        const lines = linesOfItem(topology, drawing, i, 11), wide = items.width[i]!, high = items.height[i]!;
        const size = Math.min(13, wide / (0.6 * Math.max(...lines.map((line) => line.length), 1)), (high - 2) / lines.length / 1.1);
        return (
          <g key={i}>
            <rect class={`item ${kind}`} x={items.x[i]! - wide / 2} y={items.y[i]! - high / 2} width={wide} height={high} rx={kind === "s" ? Math.min(12, high / 2) : 4} />
            {lines.map((line, k) => <text key={k} class="item-text" font-size={size} x={items.x[i]} y={items.y[i]! + size * (0.36 + (k - (lines.length - 1) / 2) * 1.15)}>{line}</text>)}
          </g>
        );
      })}
    </svg>
  );
}

// Links that are alike count as one row.
function linkKinds({ nodes, links }: TopologyData) {
  const rows = new Map<string, { ends: string; bandwidth: number; latency: number; overhead: number; count: number }>();
  links.from.forEach((from, l) => {
    const ends = [from, links.to[l]!].map((node) => kinds[nodes.kind[node]!]!).sort().join(" \u2013 ");
    const [bandwidth, latency, overhead] = [links.bandwidth[l]!, links.latency[l]!, links.overhead[l]!];
    const key = [ends, bandwidth, latency, overhead].join();
    const row = rows.get(key) ?? { ends, bandwidth, latency, overhead, count: 0 };
    row.count++;
    rows.set(key, row);
  });
  return [...rows.values()].sort((a, b) => b.bandwidth - a.bandwidth);
}

export function Machine({ topology, drawing, name = topology.name, id = "machine-title" }: Drawn & { name?: string; id?: string }) {
  const rows = linkKinds(topology), most = 40;
  return (
    <section class="card" aria-labelledby={id}>
      <div class="card-head"><h2 id={id}>{id === "machine-title" ? "Machine" : name}</h2><p class="soft">{id === "machine-title" ? `${name}, ` : ""}{drawing.shape}{topology.source ? `. Source: ${topology.source}` : ""}</p></div>
      <div class="machine-body">
        <Picture topology={topology} drawing={drawing} />
        <div class="scroll" tabIndex={0} role="region" aria-label={`Speeds of links of ${name}`}>
          <table>
            <thead><tr><th class="text">links</th><th>count</th><th>bandwidth</th><th>latency</th><th>overhead</th></tr></thead>
            <tbody>
              {rows.slice(0, most).map((row, i) => (
                <tr key={i}><td class="text">{row.ends}</td><td>{format.count(row.count)}</td><td>{format.bandwidth(row.bandwidth)}</td><td>{format.time(row.latency)}</td><td>{format.time(row.overhead)}</td></tr>
              ))}
            </tbody>
          </table>
          {rows.length > most && <p class="soft">and {format.counted(rows.length - most, "other kind")}</p>}
        </div>
      </div>
    </section>
  );
}
