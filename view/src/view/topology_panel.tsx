// The machine, with the schedule playing over it.
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
import { Icon } from "./icons";
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
    const { box } = drawing;
    const margin = 10;
    const fit = Math.min((width - 2 * margin) / box.width, (height - 2 * margin) / box.height, 64);
    const { k, x, y } = transform.value;
    const left = (width - box.width * fit) / 2 - box.x * fit, top = (height - box.height * fit) / 2 - box.y * fit;
    view.current = { scale: fit * k, x: x + left * k, y: y + top * k, width, height };
    const followedNow = follow.value;
    const at = now.value;
    current.holdings.seek(at);
    drawing.draw(context, view.current, {
      palette: palette.value,
      theme: theme.value,
      at,
      byRun: colourBy.value === "run",
      followed: followed.value,
      holders: followedNow.kind === "chunk" ? current.holders(followedNow.chunk, at) : null,
      rank: followedNow.kind === "rank" ? followedNow.rank : null,
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
    const lines = found ? describe(found) : describeHost(event);
    if (lines) showTooltip(event, lines);
    else hideTooltip();
  };
  const describeHost = (event: PointerEvent): string[] | null => {
    const { left, top } = canvas.current!.getBoundingClientRect();
    const host = drawing.pickHost(view.current, event.clientX - left, event.clientY - top);
    const { nodes, hosts } = current.data.topology;
    if (host < 0 || !hosts.name[host]) return null;
    const ranks = nodes.rank.filter((rank, node) => rank >= 0 && nodes.host[node] === host);
    return [`host ${hosts.name[host]}`, `ranks ${format.ranges(ranks)}`];
  };
  const describe = (target: Target): string[] => {
    const { topology } = current.data;
    if (target.kind === "node") {
      const rank = topology.nodes.rank[target.node]!;
      if (rank < 0) return [current.nodeName(target.node), abilities(topology.nodes.can[target.node]!)].filter(Boolean);
      const share = current.holdings.ofRank(rank);
      return [current.rankName(rank), current.nodeName(target.node), share < 0 ? "needs nothing" : `has ${format.percent(share)} of what it needs`];
    }
    const cable = current.cables[target.cable]!;
    return [cable.forward, cable.backward].filter((side) => side.length).flatMap((side) => {
      const link = side[0]!;
      const wide = topology.links.bandwidth[link]!;
      return [
        current.linkName(link),
        `${side.length > 1 ? `${side.length} x ` : ""}${format.bandwidth(wide)}, ${format.time(topology.links.latency[link]!)} latency`,
        `busy ${format.percent(current.loadNow(link, now.value))} now, ${format.percent(current.loadTotal(link))} of the run, ${format.size(current.data.schedule.links.bytes[link]!)}`,
      ];
    });
  };
  const onClick = (event: MouseEvent) => {
    const found = at(event);
    if (!found) return;
    if (found.kind === "node") {
      const rank = current.data.topology.nodes.rank[found.node]!;
      if (rank >= 0) toggleFollow({ kind: "rank", rank });
    } else {
      const cable = current.cables[found.cable]!;
      toggleFollow({ kind: "link", link: (cable.forward[0] ?? cable.backward[0])! });
    }
  };

  const { topology } = current.data;
  const label = `Drawing of ${topology.name}: ${format.counted(current.numRanks, "rank")}, ${format.counted(current.cables.length, "cable")}. ${topology.layout}. The tables below have the same facts.`;
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
        style={{ cursor: hover.value ? "pointer" : transform.value.k > 1 ? "grab" : "default" }}
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
