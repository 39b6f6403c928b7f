// Who holds what: a cell for every rank and chunk, filled by the share of what is needed there in the end.
import { useSignal } from "@preact/signals";
import { useCanvas } from "../shared/canvas";
import { saveCanvas } from "../shared/download";
import * as format from "../shared/format";
import { palette } from "../shared/theme";
import { hideTooltip, showTooltip } from "../shared/tooltip";
import { follow, model, now } from "./state";

const margin = { left: 34, top: 20, right: 2, bottom: 2 };

export function Matrix() {
  const current = model.value;
  const { holdings } = current;
  const hovered = useSignal<{ row: number; column: number } | null>(null);

  const shape = (width: number, height: number) => {
    const cellWidth = Math.min(26, (width - margin.left - margin.right) / Math.max(1, holdings.columns));
    const cellHeight = Math.min(26, (height - margin.top - margin.bottom) / Math.max(1, holdings.rows));
    return { cellWidth, cellHeight };
  };

  const canvas = useCanvas((context, width, height) => {
    const colours = palette.value;
    holdings.seek(now.value);
    const { cellWidth, cellHeight } = shape(width, height);
    const gap = cellWidth > 5 && cellHeight > 5 ? 1 : 0;
    for (let row = 0; row < holdings.rows; row++) {
      for (let column = 0; column < holdings.columns; column++) {
        const share = holdings.share(row, column);
        const x = margin.left + column * cellWidth, y = margin.top + row * cellHeight;
        context.globalAlpha = 1;
        context.fillStyle = share < 0 ? colours.line : colours.panel;
        context.fillRect(x, y, cellWidth - gap, cellHeight - gap);
        if (share > 0) {
          context.globalAlpha = share >= 0.9995 ? 1 : 0.15 + 0.55 * share;
          context.fillStyle = share >= 0.9995 ? colours.good : colours.accent;
          context.fillRect(x, y, cellWidth - gap, cellHeight - gap);
        }
      }
    }
    context.globalAlpha = 1;
    drawNames(context, cellWidth, cellHeight, colours.soft);
    drawFollowed(context, cellWidth, cellHeight, colours.critical);
  });

  const drawNames = (context: CanvasRenderingContext2D, cellWidth: number, cellHeight: number, colour: string) => {
    context.fillStyle = colour;
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "right";
    const everyRow = Math.max(1, Math.ceil(14 / cellHeight));
    const exact = current.played.detail !== null;
    const first = (name: string) => /\d+/.exec(name)?.[0] ?? "";
    for (let row = 0; row < holdings.rows; row += everyRow)
      context.fillText(exact ? String(row) : first(holdings.rowName(row)), margin.left - 5, margin.top + (row + 0.5) * cellHeight, margin.left - 6);
    context.textAlign = "center";
    let last = -Infinity; // right end of the name before
    const end = margin.left + holdings.columns * cellWidth;
    const nameColumn = (text: string, column: number) => {
      const half = context.measureText(text).width / 2;
      const x = Math.min(margin.left + (column + 0.5) * cellWidth, Math.max(end, margin.left + 30) - half);
      if (x - half < last + 6) return;
      context.fillText(text, x, margin.top / 2);
      last = x + half;
    };
    const everyColumn = Math.max(1, Math.ceil(30 / cellWidth));
    for (let column = 0; column < holdings.columns; column += everyColumn)
      nameColumn(exact ? String(column) : first(holdings.columnName(column)), column);
  };

  const drawFollowed = (context: CanvasRenderingContext2D, cellWidth: number, cellHeight: number, colour: string) => {
    const what = follow.value;
    context.strokeStyle = colour;
    context.lineWidth = 1.5;
    const row = what.kind === "rank" ? holdings.rowOfRank(what.rank) : -1;
    const column = what.kind === "chunk" ? holdings.columnOfChunk(what.chunk) : -1;
    if (row >= 0) context.strokeRect(margin.left - 0.5, margin.top + row * cellHeight - 0.5, holdings.columns * cellWidth, cellHeight);
    if (column >= 0) context.strokeRect(margin.left + column * cellWidth - 0.5, margin.top - 0.5, cellWidth, holdings.rows * cellHeight);
    const cell = hovered.value;
    if (cell) context.strokeRect(margin.left + cell.column * cellWidth - 0.5, margin.top + cell.row * cellHeight - 0.5, cellWidth, cellHeight);
  };

  const under = (event: MouseEvent) => {
    const { left, top, width, height } = canvas.current!.getBoundingClientRect();
    const { cellWidth, cellHeight } = shape(width, height);
    const column = Math.floor((event.clientX - left - margin.left) / cellWidth), row = Math.floor((event.clientY - top - margin.top) / cellHeight);
    return row >= 0 && column >= 0 && row < holdings.rows && column < holdings.columns ? { row, column } : null;
  };
  const onMove = (event: PointerEvent) => {
    const cell = under(event);
    if (cell?.row !== hovered.value?.row || cell?.column !== hovered.value?.column) hovered.value = cell;
    if (!cell) return hideTooltip();
    holdings.seek(now.value);
    showTooltip(event, [`${holdings.rowName(cell.row)}, ${holdings.columnName(cell.column)}`, holdings.describe(cell.row, cell.column)]);
  };
  const onClick = (event: MouseEvent) => {
    const cell = under(event);
    const chunks = current.followableChunks();
    if (!cell || chunks.length === 0) return;
    const chunk = current.played.detail ? cell.column : chunks.find((c) => holdings.columnOfChunk(c) === cell.column);
    if (chunk !== undefined) follow.value = { kind: "chunk", chunk };
  };

  const exact = current.played.detail !== null;
  const height = Math.min(420, Math.max(150, margin.top + holdings.rows * Math.min(26, exact && holdings.rows <= 16 ? 22 : 6)));
  if (holdings.rows === 0) return <p class="soft">This plan is too large for a table of who holds what.</p>;
  return (
    <div class="matrix">
      <p class="soft">
        {exact ? "A row for each rank, a column for each chunk" : `Each row is a group of ranks, each column a group of chunks`}, at {format.time(now.value, 4, current.end)}. A click follows a chunk.
      </p>
      <canvas ref={canvas} role="img" style={{ height: `${height}px` }}
        aria-label={`Which rank holds which chunk at the time shown: ${format.count(holdings.rows)} rows and ${format.count(holdings.columns)} columns`}
        onPointerMove={onMove} onClick={onClick}
        onPointerLeave={() => {
          hovered.value = null;
          hideTooltip();
        }} />
      <div class="below">
        <ul class="legend">
          <li><span class="swatch" style={{ background: "var(--panel)", outline: "1px solid var(--strong-line)" }} />nothing</li>
          <li><span class="swatch" style={{ background: "var(--accent)", opacity: 0.5 }} />a part</li>
          <li><span class="swatch" style={{ background: "var(--good)" }} />all that is needed</li>
          {exact && <li><span class="swatch" style={{ background: "var(--line)" }} />held, not needed in the end</li>}
        </ul>
        <button onClick={() => saveCanvas(canvas.current!, "chunks.png")}>PNG</button>
      </div>
    </div>
  );
}
