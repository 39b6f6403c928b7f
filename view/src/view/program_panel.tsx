// The Program: what each threadblock of a rank does, when, and what it waits for.
import { useMemo } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { useCanvas } from "../shared/canvas";
import { category } from "../shared/colours";
import * as format from "../shared/format";
import { palette, theme } from "../shared/theme";
import { hideTooltip, showTooltip } from "../shared/tooltip";
import type { ProgramData } from "./data";
import { follow, model } from "./state";
import { opcodeName, waitName } from "./words";

const laneHeight = 20;
const ruler = 22;

// Colours say what an instruction does: sends only, receives only, forwards, adds up, works alone.
const groups: { name: string; letters: string; colour: number }[] = [
  { name: "send", letters: "s", colour: 0 },
  { name: "recv", letters: "r", colour: 2 },
  { name: "receive and send on", letters: "c", colour: 5 },
  { name: "receive and reduce", letters: "pfa", colour: 1 },
  { name: "local copy or reduce", letters: "ken", colour: 3 },
];

export function ProgramPanel() {
  const program = model.value.data.program;
  if (!program) return <p class="soft">The plan has no program. Plans written with <code>plan -o FILE</code> have one.</p>;
  return <Lanes program={program} />;
}

function Lanes({ program }: { program: ProgramData }) {
  const chosen = useSignal(program.ranks[0] ?? 0);
  const block = useSignal(-1);
  // Following a rank shows its threadblocks.
  const what = follow.value;
  const rank = what.kind === "rank" && program.ranks.includes(what.rank) ? what.rank : program.ranks.includes(chosen.value) ? chosen.value : program.ranks[0]!;
  const place = program.ranks.indexOf(rank);
  const first = program.block_first[place] ?? 0, last = program.block_first[place + 1] ?? 0;
  const blocks = useMemo(() => [...Array(last - first).keys()].map((i) => first + i), [first, last]);
  const end = Math.max(program.time_ps, 1);
  const label = (width: number) => (width < 560 ? 92 : 190);
  const nameOf = (b: number) => {
    const send = program.send[b]!, recv = program.recv[b]!;
    return [`tb ${program.index[b]}`, recv && `\u2190 ${recv}`, send && `\u2192 ${send}`].filter(Boolean).join(" ");
  };

  const canvas = useCanvas((context, width) => {
    const colours = palette.value;
    const left = label(width);
    const x = (at: number) => left + (at / end) * (width - left);
    context.textBaseline = "middle";
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = colours.soft;
    const unit = end / 4;
    for (let i = 0; i <= 4; i++) {
      context.textAlign = i === 4 ? "right" : i === 0 ? "left" : "center";
      context.fillText(format.time(i * unit, 3, end), x(i * unit), ruler / 2);
    }
    context.font = "12px system-ui, sans-serif";
    blocks.forEach((b, lane) => {
      const y = ruler + lane * laneHeight;
      context.fillStyle = b === block.value ? colours.panel : colours.paper;
      context.fillRect(0, y, width, laneHeight);
      context.textAlign = "left";
      context.fillStyle = colours.ink;
      context.fillText(nameOf(b), 2, y + laneHeight / 2, left - 8);
      for (let i = program.instruction_first[b]!; i < program.instruction_first[b + 1]!; i++) {
        const from = x(program.begin[i]!), start = x(program.start[i]!), stop = x(program.end[i]!);
        context.fillStyle = colours.line;
        context.fillRect(from, y + laneHeight / 2 - 2, Math.max(0, start - from), 4);
        context.fillStyle = category(groups.find((g) => g.letters.includes(program.op[i]!))!.colour, theme.value);
        context.fillRect(start, y + 3, Math.max(1, stop - start - (stop - start > 3 ? 0.75 : 0)), laneHeight - 6);
      }
      context.fillStyle = colours.line;
      context.fillRect(0, y + laneHeight - 0.5, width, 0.5);
    });
  });

  const under = (event: MouseEvent) => {
    const { left, top, width } = canvas.current!.getBoundingClientRect();
    const lane = Math.floor((event.clientY - top - ruler) / laneHeight);
    const b = blocks[lane];
    if (b === undefined) return null;
    const at = ((event.clientX - left - label(width)) / (width - label(width))) * end;
    const slack = (2 / width) * end;
    let found = -1;
    for (let i = program.instruction_first[b]!; i < program.instruction_first[b + 1]!; i++)
      if (at >= program.begin[i]! - slack && at <= program.end[i]! + slack) found = i;
    return { b, i: found };
  };
  const onMove = (event: PointerEvent) => {
    const hit = under(event);
    if (!hit) return hideTooltip();
    if (hit.i < 0) return showTooltip(event, [nameOf(hit.b), `channel ${program.channel[hit.b]}`]);
    const i = hit.i;
    showTooltip(event, [
      `${i - program.instruction_first[hit.b]!}: ${opcodeName(program.op[i]!)}, ${format.counted(program.count[i]!, "chunk")}`,
      [program.from[i], program.to[i]].filter(Boolean).join(" \u2192 "),
      `${format.time(program.start[i]!)} to ${format.time(program.end[i]!)}`,
      program.start[i]! > program.begin[i]! ? `waited ${format.time(program.start[i]! - program.begin[i]!)} for ${waitText(program, i)}` : "",
    ].filter(Boolean));
  };

  const height = ruler + blocks.length * laneHeight + 2;
  const waiting = blocks.reduce((sum, b) => {
    for (let i = program.instruction_first[b]!; i < program.instruction_first[b + 1]!; i++) sum += program.start[i]! - program.begin[i]!;
    return sum;
  }, 0);
  return (
    <div class="program">
      <div class="tools">
        <label class="inline"><span>Rank</span>
          <select value={String(rank)} onChange={(e) => {
            chosen.value = Number(e.currentTarget.value);
            block.value = -1;
            if (follow.value.kind === "rank") follow.value = { kind: "rank", rank: chosen.value };
          }}>
            {program.ranks.map((r) => <option value={String(r)}>{r}</option>)}
          </select>
        </label>
        <span class="soft">
          {program.protocol}, {format.counted(program.slots, "slot")}, {format.counted(program.instances, "instance")}, {format.counted(program.passes, "pass", "passes")}; {format.time(program.time_ps)} in all
          {blocks.length > 0 && `; threadblocks of rank ${rank} wait ${format.percent(waiting / (end * blocks.length))} of it`}
        </span>
      </div>
      {blocks.length === 0 ? <p class="soft">Rank {rank} does nothing.</p> : (
        <div class="lanes" tabIndex={0} role="region" aria-label={`Threadblocks of rank ${rank}`}>
          <canvas ref={canvas} role="img" style={{ height: `${height}px` }}
            aria-label={`${format.counted(blocks.length, "threadblock")} of rank ${rank} over time. Choose a threadblock below for its instructions as a table.`}
            onPointerMove={onMove} onPointerLeave={hideTooltip}
            onClick={(event) => (block.value = under(event)?.b ?? -1)} />
        </div>
      )}
      <ul class="legend">
        {groups.map((g) => <li><span class="swatch" style={{ background: category(g.colour, theme.value) }} />{g.name}</li>)}
        <li><span class="swatch thin" style={{ background: "var(--line)" }} />waits</li>
      </ul>
      {program.notes.map((note) => <p class="soft">{note}</p>)}
      {blocks.length > 0 && (
        <label class="inline"><span>Instructions of</span>
          <select value={String(block.value)} onChange={(e) => (block.value = Number(e.currentTarget.value))}>
            <option value="-1">no threadblock</option>
            {blocks.map((b) => <option value={String(b)}>threadblock {program.index[b]}</option>)}
          </select>
        </label>
      )}
      {blocks.includes(block.value) && <Instructions program={program} block={block.value} />}
    </div>
  );
}

function waitText(program: ProgramData, i: number): string {
  return program.waits[i] && program.bound_by[i] === "d" ? program.waits[i]! : waitName(program.bound_by[i]!);
}

function Instructions({ program, block }: { program: ProgramData; block: number }) {
  const first = program.instruction_first[block]!, last = program.instruction_first[block + 1]!;
  const most = 500;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Instructions">
      <table>
        <thead>
          <tr><th>#</th><th class="text">instruction</th><th>chunks</th><th class="text">from</th><th class="text">to</th><th>starts</th><th>ends</th><th>waited</th><th class="text">for</th><th class="text">after</th></tr>
        </thead>
        <tbody>
          {[...Array(Math.min(last - first, most)).keys()].map((k) => {
            const i = first + k;
            const waited = program.start[i]! - program.begin[i]!;
            return (
              <tr key={k}>
                <td>{k}</td><td class="text"><code>{opcodeName(program.op[i]!)}</code></td><td>{program.count[i]}</td>
                <td class="text">{program.from[i]}</td><td class="text">{program.to[i]}</td>
                <td>{format.time(program.start[i]!)}</td><td>{format.time(program.end[i]!)}</td>
                <td>{waited > 0 ? format.time(waited) : ""}</td><td class="text">{waited > 0 ? waitName(program.bound_by[i]!) : ""}</td>
                <td class="text">{program.waits[i]}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {last - first > most && <p class="soft">and {format.count(last - first - most)} more.</p>}
    </div>
  );
}
