// The timeline: the activity of every link, or of every rank. Ctrl and the wheel zoom, dragging pans, the ruler scrubs.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { batch, signal, useSignal } from "@preact/signals";
import { scaleLinear } from "d3-scale";
import { useCanvas, widest } from "../shared/canvas";
import { category, loadGradient } from "../shared/colours";
import { saveCanvas } from "../shared/download";
import * as format from "../shared/format";
import { wrapped } from "../shared/text";
import { palette, theme } from "../shared/theme";
import { hideTooltip, showTooltip } from "../shared/tooltip";
import { Icon } from "../shared/icons";
import { asList } from "./model";
import { follow, followed, model, now, playing, seek, toggleFollow } from "./state";
import { RankMessages, drawRow, rowAt, rowsOf, type By, type Order, type Row } from "./timeline_rows";
import { kindName, pieceName } from "./words";

const lineStep = 12; // of names in several lines
const ruler = 24;

// The times at the ends of what is shown, as shares of the run.
const shown = signal({ from: 0, to: 1 });

export function zoomTimeline(factor: number, around = 0.5) {
  const { from, to } = shown.value;
  const width = Math.min(1, Math.max((to - from) / factor, 1e-4));
  const middle = from + around * (to - from);
  setShown(middle - around * width, width);
}
function setShown(from: number, width: number) {
  const start = Math.min(Math.max(0, from), 1 - width);
  shown.value = { from: start, to: start + width };
}
export function showAllTime() {
  shown.value = { from: 0, to: 1 };
}

export function Timeline() {
  const current = model.value;
  const by = useSignal<By>("link");
  const order = useSignal<Order>("busy");
  const filter = useSignal("");
  const top = useSignal(0);
  const hovered = useSignal(-1);
  const scroller = useRef<HTMLDivElement>(null);
  const messages = useMemo(() => new RankMessages(current), [current]);
  const rows = useMemo(() => rowsOf(current, by.value, order.value, filter.value), [current, by.value, order.value, filter.value]);
  useEffect(() => {
    showAllTime();
    if (scroller.current) scroller.current.scrollTop = 0;
  }, [current]);

  // Names get the room that they need, up to a part of the width; smaller letters where that is little.
  const labels = useRef(92);
  const labelWidth = (_: number) => labels.current;
  const lines = useSignal(1); // of the longest name
  const rowHeight = lines.value === 1 ? 20 : 8 + lines.value * lineStep;
  const letters = (width: number) => (width < 560 ? 10.5 : 12);

  const canvas = useCanvas((context, width, height) => {
    context.font = `600 ${letters(width)}px system-ui, sans-serif`;
    const label = (labels.current = widest(context, rows.slice(0, 3000).map(({ name }) => name), 70, (width < 560 ? 0.48 : 0.4) * width) * 1.05 + 14);
    const colours = palette.value;
    const inLines = (name: string) => wrapped(name, label - 10, letters(width), 600);
    const most = Math.max(1, ...rows.slice(0, 3000).filter(({ name }) => context.measureText(name).width > (label - 10) / 1.04).map(({ name }) => inLines(name).length));
    if (most !== lines.peek()) queueMicrotask(() => (lines.value = most));
    const times = { from: shown.value.from * current.end, to: shown.value.to * current.end };
    const look = { palette: colours, theme: theme.value, followed: followed.value };
    keepInView();
    const first = Math.floor(top.value / rowHeight);
    context.textBaseline = "middle";
    for (let i = first; i < rows.length; i++) {
      const y = ruler + i * rowHeight - top.value;
      if (y > height) break;
      const row = rows[i]!;
      const isFollowed = isRowFollowed(row);
      if (isFollowed || i === hovered.value) {
        context.fillStyle = colours.panel;
        context.fillRect(0, y, width, rowHeight);
      }
      context.textAlign = "left";
      context.fillStyle = isFollowed ? colours.critical : colours.ink;
      context.font = `${row.kind === "critical" || isFollowed ? "600 " : ""}${letters(width)}px system-ui, sans-serif`;
      inLines(row.name).forEach((line, k, all) => context.fillText(line, 2, y + rowHeight / 2 + (k - (all.length - 1) / 2) * lineStep));
      drawRow(context, current, messages, row, { x: label, y: y + 2, width: width - label, height: rowHeight - 4, ...times }, look);
      context.fillStyle = colours.line;
      context.fillRect(0, y + rowHeight - 0.5, width, 0.5);
    }
    drawRuler(context, width, height, label, times);
  });

  // Where the reader plays into what is not shown, the timeline goes along.
  const keepInView = () => {
    const at = now.value / current.end;
    const { from, to } = shown.peek();
    if (playing.peek() && (at > to || at < from)) queueMicrotask(() => setShown(at, to - from));
  };

  const drawRuler = (context: CanvasRenderingContext2D, width: number, height: number, label: number, times: { from: number; to: number }) => {
    const colours = palette.value;
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, width, ruler);
    const { ps: unit, name } = format.timeUnit(times.to);
    const scale = scaleLinear([times.from / unit, times.to / unit], [label, width]);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "center";
    for (const tick of scale.ticks(Math.max(3, Math.floor((width - label) / 90)))) {
      const x = scale(tick);
      context.fillStyle = colours.line;
      context.fillRect(x, ruler - 5, 1, 5);
      context.fillStyle = colours.soft;
      const text = `${format.significant(tick, 6)} ${name}`;
      const half = context.measureText(text).width / 2;
      if (x - half >= label - 6 && x + half <= width) context.fillText(text, x, ruler / 2 - 2);
    }
    context.fillStyle = colours["strong-line"];
    context.fillRect(label, ruler - 1, width - label, 1);
    const x = scale(now.value / unit);
    if (x >= label - 1 && x <= width + 1) {
      context.fillStyle = colours.critical;
      context.fillRect(x - 0.75, ruler - 8, 1.5, height);
      context.beginPath();
      context.moveTo(x - 5, ruler - 12);
      context.lineTo(x + 5, ruler - 12);
      context.lineTo(x, ruler - 4);
      context.fill();
    }
  };

  const isRowFollowed = (row: Row): boolean => {
    const what = follow.value;
    return (what.kind === "rank" && row.kind === "rank" && what.rank === row.id) || (what.kind === "link" && row.kind === "link" && what.link === row.id) ||
      (what.kind === "critical" && row.kind === "critical");
  };

  // Row and time under the pointer.
  const under = (event: MouseEvent) => {
    const { left, top: above, width } = canvas.current!.getBoundingClientRect();
    const x = event.clientX - left, y = event.clientY - above;
    const label = labelWidth(width);
    const { from, to } = shown.value;
    const at = (from + ((x - label) / (width - label)) * (to - from)) * current.end;
    const i = y < ruler ? -1 : Math.floor((y - ruler + top.value) / rowHeight);
    const lower = (y - ruler + top.value) % rowHeight > rowHeight / 2;
    const slack = ((2 / (width - label)) * (to - from)) * current.end;
    return { x, y, label, width, at, row: rows[i], index: i < rows.length ? i : -1, lower, slack, onRuler: y < ruler, onLabel: x < label };
  };

  const drag = useRef<{ x: number; from: number; mode: "pan" | "scrub"; moved: boolean } | null>(null);
  const onDown = (event: PointerEvent) => {
    if (event.button !== 0) return;
    const place = under(event);
    if (place.onLabel && !place.onRuler) return;
    if (!place.onRuler && event.pointerType === "touch" && shown.value.to - shown.value.from > 0.999) return; // lets the page scroll
    drag.current = { x: event.clientX, from: shown.value.from, mode: place.onRuler ? "scrub" : "pan", moved: false };
    canvas.current!.setPointerCapture(event.pointerId);
    if (place.onRuler) {
      playing.value = false;
      seek(place.at);
    }
  };
  const onMove = (event: PointerEvent) => {
    const place = under(event);
    const dragging = drag.current;
    if (dragging) {
      hideTooltip();
      if (Math.abs(event.clientX - dragging.x) > 3) dragging.moved = true;
      if (dragging.mode === "scrub") seek(place.at);
      else if (dragging.moved) {
        const width = shown.value.to - shown.value.from;
        setShown(dragging.from - ((event.clientX - dragging.x) / (place.width - place.label)) * width, width);
      }
      return;
    }
    hovered.value = place.index;
    const lines = place.row && !place.onRuler ? describe(place.row, place.onLabel ? now.value : place.at, place.slack, place.lower, place.onLabel) : null;
    if (lines) showTooltip(event, lines);
    else hideTooltip();
  };
  const onUp = (event: PointerEvent) => {
    const dragging = drag.current;
    drag.current = null;
    if (dragging?.moved || dragging?.mode === "scrub") return;
    const place = under(event);
    if (!place.row || place.onRuler) return;
    if (place.onLabel) {
      toggleFollow(place.row.kind === "critical" ? { kind: "critical" } : place.row.kind === "link" ? { kind: "link", link: place.row.id } : { kind: "rank", rank: place.row.id });
    } else {
      batch(() => {
        playing.value = false;
        seek(place.at);
      });
    }
  };
  useEffect(() => {
    const element = canvas.current!;
    const onWheel = (event: WheelEvent) => {
      const place = under(event);
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        zoomTimeline(Math.exp(-event.deltaY / 240), Math.min(1, Math.max(0, (place.x - place.label) / (place.width - place.label))));
      } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        const width = shown.value.to - shown.value.from;
        setShown(shown.value.from + (event.deltaX / (place.width - place.label)) * width, width);
      }
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, [rows]);

  const describe = (row: Row, at: number, slack: number, lower: boolean, onLabel: boolean): string[] | null => {
    const { topology } = current.data;
    const schedule = current.played;
    const { critical } = current;
    if (onLabel) {
      if (row.kind === "link")
        return [row.name, `${format.bandwidth(topology.links.bandwidth[row.id]!)}, ${format.time(topology.links.latency[row.id]!)} latency`,
          `busy ${format.percent(current.loadTotal(row.id))} of the run, ${format.size(schedule.links.bytes[row.id]!)}`];
      return [row.name];
    }
    const found = rowAt(current, messages, row, at, slack, lower);
    if (!found) return null;
    if ("piece" in found) {
      const i = found.piece;
      return [`${kindName(critical.kind[i]!)}, ${format.time(critical.end[i]! - critical.start[i]!)}`, pieceName(current, critical, i),
        `from ${format.time(critical.start[i]!)}`].filter(Boolean);
    }
    if ("load" in found) return [row.name, `${row.kind === "rank" ? (lower ? "into it: " : "out of it: ") : ""}busy ${format.percent(found.load)} about ${format.time(at)}`];
    return describeMessage(found.message);
  };
  const describeMessage = (m: number): string[] => {
    const detail = current.played.detail!;
    const first = detail.transfer_first[m]!, last = detail.transfer_first[m + 1]!;
    const chunks: number[] = [];
    for (let t = first; t < last; t++) for (let c = 0; c < detail.count[t]! && chunks.length < 200; c++) chunks.push(detail.chunk[t]! + c);
    chunks.sort((a, b) => a - b);
    return [
      `rank ${asList(detail.src[m]!).join(", ")} \u2192 ${asList(detail.dst[m]!).join(", ")}`,
      `${detail.op[first] === "r" ? "reduces" : "copies"} ${format.size(detail.bytes[m]!)}${detail.step ? `, step ${detail.step[m]}` : ""}`,
      `chunk${chunks.length === 1 ? "" : "s"} ${format.ranges(chunks)}`,
      `${format.time(detail.start[m]!)} to ${format.time(detail.end[m]!)}`,
    ];
  };

  const exact = current.played.detail !== null;
  const count = rows.filter((row) => row.kind !== "critical").length;
  const height = ruler + Math.min(rows.length, 12) * rowHeight;
  return (
    <section class="card timeline" aria-labelledby="timeline-title">
      <div class="card-head">
        <h2 id="timeline-title">Timeline</h2>
        <div class="tools">
          <label class="inline"><span>Rows</span>
            <select value={by.value} onChange={(e) => (by.value = e.currentTarget.value as By)}>
              <option value="link">links</option>
              <option value="rank">ranks</option>
            </select>
          </label>
          {by.value === "link" && (
            <label class="inline"><span>Order</span>
              <select value={order.value} onChange={(e) => (order.value = e.currentTarget.value as Order)}>
                <option value="busy">busiest first</option>
                <option value="first">first use</option>
                <option value="machine">as in the machine</option>
              </select>
            </label>
          )}
          <input type="search" class="filter" placeholder={by.value === "link" ? "filter: gpu:3, nic" : "filter: 3, h0"} aria-label="Filter rows" value={filter.value}
            onInput={(e) => (filter.value = e.currentTarget.value)} />
          <span class="buttons">
            <button class="icon" aria-label="Zoom out in time" title="Zoom out (-)" onClick={() => zoomTimeline(1 / 2)}><Icon name="minus" /></button>
            <button class="icon" aria-label="Zoom in in time" title="Zoom in (+)" onClick={() => zoomTimeline(2, playheadShare(current.end))}><Icon name="plus" /></button>
            <button class="icon" aria-label="Show all time" title="All (0)" onClick={showAllTime}><Icon name="fit" /></button>
            <button onClick={() => saveCanvas(canvas.current!, "timeline.png")}>PNG</button>
          </span>
        </div>
      </div>
      <p class="unseen" role="status">{format.counted(count, "row")} shown</p>
      <div class="rows" ref={scroller} style={{ height: `${height}px` }} tabIndex={0} role="region" aria-label="Timeline rows"
        onScroll={(e) => (top.value = e.currentTarget.scrollTop)}>
        <canvas ref={canvas} role="img" aria-label={`Timeline of ${format.counted(count, by.value)}. The tables below have the same facts.`}
          onPointerDown={onDown} onPointerMove={onMove} onPointerUp={onUp}
          onPointerLeave={() => {
            hovered.value = -1;
            hideTooltip();
          }} />
        <div style={{ height: `${Math.max(0, rows.length * rowHeight + ruler - height)}px` }} />
      </div>
      <ul class="legend">
        {exact ? (
          <>
            <li><span class="swatch" style={{ background: category(0, theme.value) }} />copies</li>
            {current.data.collective.reduces && <li><span class="swatch" style={{ background: category(1, theme.value) }} />reduces</li>}
          </>
        ) : (
          <li class="scale"><span>idle</span><span class="ramp" style={{ background: loadGradient(theme.value) }} /><span>all the time</span></li>
        )}
        {by.value === "rank" && <li class="soft">above: what it sends; below: what reaches it</li>}
      </ul>
    </section>
  );
}

// Where the time shown on the page stands within what the timeline shows, for zooming around it.
export function playheadShare(end: number): number {
  const { from, to } = shown.value;
  const share = (now.value / end - from) / (to - from);
  return share >= 0 && share <= 1 ? share : 0.5;
}
