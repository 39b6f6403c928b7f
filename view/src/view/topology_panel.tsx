// The machine, with the program, or the schedule, playing over it.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { select } from "d3-selection";
import { zoom, zoomIdentity, type ZoomBehavior, type ZoomTransform } from "d3-zoom";
import { useCanvas } from "../shared/canvas";
import { loadGradient } from "../shared/colours";
import { saveCanvas } from "../shared/download";
import * as format from "../shared/format";
import { palette, theme } from "../shared/theme";
import { hideTooltip, showTooltip } from "../shared/tooltip";
import { Icon } from "../shared/icons";
import { Drawing, type Target, type View } from "./drawing";
import { colourBy, follow, followed, model, now, toggleFollow } from "./state";

export function TopologyPanel() {
  const current = model.value;
  const drawing = useMemo(() => new Drawing(current), [current]);
  const transform = useSignal<ZoomTransform>(zoomIdentity);
  const hover = useSignal<Target | null>(null);
  const view = useRef<View>({ scale: 1, x: 0, y: 0, width: 0, height: 0 });
  const behaviour = useRef<ZoomBehavior<HTMLCanvasElement, unknown> | null>(null);

  const canvas = useCanvas((context, width, height) => {
    const { width: wide, height: high } = current.data.drawing;
    const fit = Math.min(width / wide, height / high, 1.6);
    const { k, x, y } = transform.value;
    view.current = { scale: fit * k, x: x + ((width - wide * fit) / 2) * k, y: y + ((height - high * fit) / 2) * k, width, height };
    const followedNow = follow.value;
    const at = now.value;
    current.holdings.seek(at);
    drawing.draw(context, view.current, {
      palette: palette.value,
      theme: theme.value,
      at,
      byRun: colourBy.value === "run",
      followed: followed.value,
      marked: followedNow.kind === "critical" ? current.criticalRanks : null,
      holders: followedNow.kind === "chunk" ? current.holders(followedNow.chunk, at) : null,
      chosen: followedNow.kind === "item" ? followedNow.item : followedNow.kind === "rank" ? current.itemOfNode[current.nodeOfRank[followedNow.rank]!]! : -1,
      hover: hover.value,
    });
  });

  useEffect(() => {
    const element = canvas.current!;
    // The wheel scrolls the page unless Ctrl is held; one finger scrolls it, two zoom.
    const zoomer = zoom<HTMLCanvasElement, unknown>()
      .scaleExtent([1, 60])
      .filter((event: Event) =>
        event instanceof WheelEvent ? event.ctrlKey || event.metaKey
        : "touches" in event ? (event as TouchEvent).touches.length === 2
        : !(event as MouseEvent).button)
      .on("zoom", (event: { transform: ZoomTransform }) => (transform.value = event.transform));
    behaviour.current = zoomer;
    select(element).call(zoomer).on("dblclick.zoom", null);
    const resize = () => zoomer.translateExtent([[0, 0], [element.clientWidth, element.clientHeight]]);
    const observer = new ResizeObserver(resize);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    transform.value = zoomIdentity;
    select(canvas.current!).property("__zoom", zoomIdentity);
  }, [current]);

  const zoomBy = (factor: number) => select(canvas.current!).call((s) => behaviour.current!.scaleBy(s, factor));
  const fitAll = () => select(canvas.current!).call((s) => behaviour.current!.transform(s, zoomIdentity));

  const at = (event: MouseEvent): Target | null => {
    const { left, top } = canvas.current!.getBoundingClientRect();
    return drawing.pick(view.current, event.clientX - left, event.clientY - top);
  };
  const onMove = (event: PointerEvent) => {
    const found = at(event);
    if (JSON.stringify(found) !== JSON.stringify(hover.value)) hover.value = found;
    if (found) showTooltip(event, describe(found));
    else hideTooltip();
  };
  const describe = (target: Target): string[] => {
    const { topology, drawing: { items } } = current.data;
    if (target.kind === "cable") return drawing.linksOfCable(target.cable).flatMap(describeLinks);
    const ranks = current.ranksOfItem[target.item]!;
    const [node] = items.node.slice(items.node_first[target.item]);
    if (ranks.length === 0) return [current.itemName(target.item), abilities(topology.nodes.can[node!]!)].filter(Boolean);
    const shares = ranks.map((rank) => current.holdings.ofRank(rank)).filter((share) => share >= 0);
    const holds = shares.length === 0 ? "needs nothing" : `${ranks.length > 1 ? "have" : "has"} ${format.percent(shares.reduce((a, b) => a + b) / shares.length)} of what ${ranks.length > 1 ? "they need" : "it needs"}`;
    if (ranks.length === 1) return [current.rankName(ranks[0]!), current.nodeName(node!), holds];
    return [current.itemName(target.item), `ranks ${format.ranges(ranks)}`, holds];
  };
  const describeLinks = (links: number[]): string[] => {
    const { links: all } = current.data.topology;
    const first = links[0]!;
    const alike = links.every((link) => all.bandwidth[link] === all.bandwidth[first] && all.latency[link] === all.latency[first]);
    const mean = (of: (link: number) => number) => links.reduce((sum, link) => sum + of(link), 0) / links.length;
    const bytes = links.reduce((sum, link) => sum + current.played.links.bytes[link]!, 0);
    const ends = links.every((link) => all.from[link] === all.from[first] && all.to[link] === all.to[first])
      ? current.linkName(first)
      : `${current.itemName(current.itemOfNode[all.from[first]!]!)} \u2192 ${current.itemName(current.itemOfNode[all.to[first]!]!)}`;
    return [
      ends,
      `${links.length > 1 ? `${links.length} links${alike ? " of" : ", the first of"} ` : ""}${format.bandwidth(all.bandwidth[first]!)}, ${format.time(all.latency[first]!)} latency`,
      `busy ${format.percent(mean((link) => current.loadNow(link, now.value)))} now, ${format.percent(mean((link) => current.loadTotal(link)))} of the run, ${format.size(bytes)}`,
    ];
  };
  const onClick = (event: MouseEvent) => {
    const found = at(event);
    if (!found) return;
    if (found.kind === "item") {
      const ranks = current.ranksOfItem[found.item]!;
      toggleFollow(ranks.length === 1 ? { kind: "rank", rank: ranks[0]! } : found);
    } else {
      toggleFollow({ kind: "link", link: drawing.linksOfCable(found.cable)[0]![0]! });
    }
  };

  const { topology, drawing: { shape, cables, width: wide, height: high } } = current.data;
  const label = `Drawing of ${topology.name}: ${format.counted(current.numRanks, "rank")}, ${format.counted(cables.form.length, "cable")}, drawn as ${shape}. The tables below have the same facts.`;
  return (
    <section class="card topology" aria-labelledby="topology-title">
      <div class="card-head">
        <h2 id="topology-title">Machine</h2>
        <div class="tools">
          <label class="inline">
            <span>Links show</span>
            <select value={colourBy.value} onChange={(e) => (colourBy.value = e.currentTarget.value as "now" | "run")}>
              <option value="now">load now</option>
              <option value="run">load of the run</option>
            </select>
          </label>
          <span class="scale" role="img" aria-label="Colours of links: from idle, grey, to busy all the time, red">
            <span>idle</span>
            <span class="ramp" style={{ background: loadGradient(theme.value) }} />
            <span>full</span>
          </span>
          <span class="buttons">
            <button class="icon" title="Zoom out" aria-label="Zoom out" onClick={() => zoomBy(1 / 1.6)}><Icon name="minus" /></button>
            <button class="icon" title="Zoom in" aria-label="Zoom in" onClick={() => zoomBy(1.6)}><Icon name="plus" /></button>
            <button class="icon" title="Fit all" aria-label="Fit the drawing" onClick={fitAll}><Icon name="fit" /></button>
            <button onClick={() => saveCanvas(canvas.current!, `${topology.name}.png`)}>PNG</button>
          </span>
        </div>
      </div>
      <canvas
        ref={canvas}
        role="img"
        aria-label={label}
        style={{ "--aspect": high / wide, cursor: hover.value ? "pointer" : transform.value.k > 1 ? "grab" : "default" }}
        onPointerMove={onMove}
        onPointerLeave={() => {
          hover.value = null;
          hideTooltip();
        }}
        onClick={onClick}
      />
    </section>
  );
}

function abilities(can: string): string {
  return { m: "multicasts", r: "reduces", b: "multicasts and reduces", "-": "" }[can] ?? "";
}
