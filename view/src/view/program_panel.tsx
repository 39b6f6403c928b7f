// The Program: what each threadblock of a rank does, when, and what it waits for.
import { useMemo, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { fitText, useCanvas, widest } from "../shared/canvas";
import { category } from "../shared/colours";
import * as format from "../shared/format";
import { palette, theme } from "../shared/theme";
import { hideTooltip, showTooltip } from "../shared/tooltip";
import type { ProgramData } from "./data";
import { follow, model } from "./state";
import { opcodeName, operandName, waitName } from "./words";

const laneHeight = 20;
const ruler = 22;

// Colours say what an instruction does.
const groups: { name: string; letters: string; colour: number }[] = [
  { name: "send", letters: "s", colour: 0 },
  { name: "receive", letters: "r", colour: 2 },
  { name: "receive and send on", letters: "c", colour: 6 },
  { name: "receive and reduce", letters: "pfa", colour: 1 },
  { name: "local", letters: "ken", colour: 3 },
];
const colourOf = (op: string) => category(groups.find((group) => group.letters.includes(op))!.colour, theme.value);

export function ProgramPanel() {
  const { program, program_note: note, facts } = model.value.data;
  if (!program && facts.program_time_ps !== null) return <p class="soft">The program takes {format.time(facts.program_time_ps)}. It is too large to be shown over time: {note}.</p>;
  if (!program) return <p class="soft">The plan has no program. Plans that <code>plan -o FILE</code> wrote have one.</p>;
  return <Threadblocks program={program} />;
}

// Numbers of the slices of every threadblock, by start.
function slicesByBlock(program: ProgramData): number[][] {
  const blocks: number[][] = program.channel.map(() => []);
  const blockOf = new Int32Array(program.op.length);
  program.channel.forEach((_, b) => blockOf.fill(b, program.instruction_first[b], program.instruction_first[b + 1]));
  program.slices?.instruction.forEach((i, s) => blocks[blockOf[i]!]!.push(s));
  return blocks;
}

function peers(list: number[], group: string): string {
  if (list.length === 0) return "";
  return { m: "multicast to ", r: "sum of ", f: "fan-in of ", "-": "" }[group]! + format.ranges([...list].sort((a, b) => a - b));
}

function Threadblocks({ program }: { program: ProgramData }) {
  const chosen = useSignal(program.ranks[0] ?? 0);
  const block = useSignal(-1);
  // Following a rank shows its threadblocks.
  const what = follow.value;
  const rank = what.kind === "rank" && program.ranks.includes(what.rank) ? what.rank : chosen.value;
  const place = program.ranks.indexOf(rank);
  const first = program.block_first[place] ?? 0, last = program.block_first[place + 1] ?? 0;
  const slices = useMemo(() => slicesByBlock(program), [program]);
  const blocks = [...Array(last - first).keys()].map((i) => first + i);
  const end = Math.max(program.time_ps, 1);
  const nameOf = (b: number) => {
    const recv = peers(program.recv[b]!, program.recv_group[b]!), send = peers(program.send[b]!, program.send_group[b]!);
    return [`${b - first}:`, recv && `\u2190 ${recv}`, send && `\u2192 ${send}`].filter(Boolean).join(" ");
  };
  const choose = (to: number) => {
    chosen.value = to;
    block.value = -1;
    if (follow.value.kind === "rank") follow.value = { kind: "rank", rank: to };
  };
  return (
    <div class="program">
      <div class="tools">
        <label class="inline"><span>Rank</span>
          <select value={String(rank)} onChange={(e) => choose(Number(e.currentTarget.value))}>
            {program.ranks.map((r) => <option value={String(r)}>{r}</option>)}
          </select>
        </label>
        <span class="soft">
          protocol {program.protocol}, {format.counted(program.slots, "slot")}, {format.counted(program.instances, "instance")}, {format.counted(program.passes, "pass", "passes")}, {format.time(program.time_ps)} in all
        </span>
      </div>
      {blocks.length === 0 ? <p class="soft">Rank {rank} does nothing.</p>
        : program.slices ? <Lanes program={program} blocks={blocks} slices={slices} end={end} nameOf={nameOf} block={block} /> : null}
      {program.notes.map((note) => <p class="soft">{note}</p>)}
      {blocks.length > 0 && <Totals program={program} blocks={blocks} nameOf={nameOf} end={end} choose={(b) => (block.value = b)} chosen={block.value} />}
      {blocks.includes(block.value) && <Instructions program={program} block={block.value} first={first} />}
    </div>
  );
}

interface LanesProps {
  program: ProgramData;
  blocks: number[];
  slices: number[][];
  end: number;
  nameOf: (block: number) => string;
  block: { value: number };
}

function Lanes({ program, blocks, slices, end, nameOf, block }: LanesProps) {
  const all = program.slices!;
  const labels = useRef(92);
  const label = (_: number) => labels.current;
  const canvas = useCanvas((context, width) => {
    const colours = palette.value;
    context.font = `${width < 560 ? 10.5 : 12}px system-ui, sans-serif`;
    const left = (labels.current = widest(context, blocks.map(nameOf), 70, (width < 560 ? 0.5 : 0.4) * width) + 10);
    const x = (at: number) => left + (at / end) * (width - left);
    context.textBaseline = "middle";
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = colours.soft;
    const ticks = width < 560 ? 2 : 4;
    for (let i = 0; i <= ticks; i++) {
      context.textAlign = i === ticks ? "right" : i === 0 ? "left" : "center";
      context.fillText(format.time((i * end) / ticks, 3, end), x((i * end) / ticks), ruler / 2);
    }
    context.font = `${width < 560 ? 10.5 : 12}px system-ui, sans-serif`;
    context.textAlign = "left";
    blocks.forEach((b, lane) => {
      const y = ruler + lane * laneHeight;
      if (b === block.value) {
        context.fillStyle = colours.panel;
        context.fillRect(0, y, width, laneHeight);
      }
      context.fillStyle = colours.ink;
      context.fillText(fitText(context, nameOf(b), left - 8), 2, y + laneHeight / 2);
      // Instances work side by side, each on its own passes.
      const strips = Math.min(program.instances, 4), high = (laneHeight - 6) / strips;
      for (const s of slices[b]!) {
        const from = x(all.reached[s]!), start = x(all.start[s]!), stop = x(all.end[s]!);
        const top = y + 3 + (all.pass[s]! % strips) * high;
        context.fillStyle = colours["strong-line"];
        context.fillRect(from, top + high / 2 - 0.75, Math.max(0, start - from), 1.5);
        context.fillStyle = colourOf(program.op[all.instruction[s]!]!);
        context.fillRect(start, top, Math.max(0.75, stop - start - (stop - start > 3 ? 0.75 : 0)), high - (strips > 1 ? 0.75 : 0));
      }
      context.fillStyle = colours.line;
      context.fillRect(0, y + laneHeight - 0.5, width, 0.5);
    });
  });
  const under = (event: MouseEvent) => {
    const { left, top, width } = canvas.current!.getBoundingClientRect();
    const b = blocks[Math.floor((event.clientY - top - ruler) / laneHeight)];
    if (b === undefined) return null;
    const at = ((event.clientX - left - label(width)) / (width - label(width))) * end;
    const slack = (2 / width) * end;
    const strips = Math.min(program.instances, 4);
    const strip = Math.floor((((event.clientY - top - ruler) % laneHeight) / laneHeight) * strips);
    const hits = slices[b]!.filter((s) => all.pass[s]! % strips === strip && at >= all.reached[s]! - slack && at <= all.end[s]! + slack);
    return { b, slice: hits.at(-1) ?? -1 };
  };
  const onMove = (event: PointerEvent) => {
    const hit = under(event);
    if (!hit) return hideTooltip();
    if (hit.slice < 0) return showTooltip(event, [nameOf(hit.b), `channel ${program.channel[hit.b]}`]);
    const s = hit.slice, i = all.instruction[s]!;
    const waited = all.start[s]! - all.reached[s]!;
    showTooltip(event, [
      `${i - program.instruction_first[hit.b]!}: ${opcodeName(program.op[i]!)}, ${format.counted(program.count[i]!, "chunk")}`,
      [operandName(program.from_buffer[i]!, program.from[i]!), operandName(program.to_buffer[i]!, program.to[i]!)].filter(Boolean).join(" \u2192 "),
      `${program.passes > 1 ? `pass ${all.pass[s]}, ` : ""}${format.time(all.start[s]!)} to ${format.time(all.end[s]!)}`,
      waited > 0 ? `waited ${format.time(waited)}, last for ${waitName(all.waited[s]!)}` : "",
    ].filter(Boolean));
  };
  return (
    <>
      <div class="lanes" tabIndex={0} role="region" aria-label="Threadblocks over time">
        <canvas ref={canvas} role="img" style={{ height: `${ruler + blocks.length * laneHeight + 2}px` }}
          aria-label={`${format.counted(blocks.length, "threadblock")} over time. The table below has the same facts.`}
          onPointerMove={onMove} onPointerLeave={hideTooltip}
          onClick={(event) => (block.value = under(event)?.b ?? -1)} />
      </div>
      <ul class="legend">
        {groups.map((group) => <li><span class="swatch" style={{ background: category(group.colour, theme.value) }} />{group.name}</li>)}
        <li><span class="swatch thin" style={{ background: "var(--strong-line)" }} />waits</li>
      </ul>
    </>
  );
}

const waitKinds = [["wait_message", "message"], ["wait_block", "threadblock"], ["wait_slot", "slot"], ["wait_link", "link"]] as const;

// A table of how each threadblock spends its time, over all passes and instances.
function Totals({ program, blocks, nameOf, end, choose, chosen }: {
  program: ProgramData; blocks: number[]; nameOf: (block: number) => string; end: number; choose: (block: number) => void; chosen: number;
}) {
  const sum = (list: number[], b: number) => {
    let total = 0;
    for (let i = program.instruction_first[b]!; i < program.instruction_first[b + 1]!; i++) total += list[i]!;
    return total / program.instances;
  };
  return (
    <div class="scroll tall" tabIndex={0} role="region" aria-label="What threadblocks do with their time">
      <table>
        <thead>
          <tr><th class="text">threadblock</th><th>instructions</th><th>works</th>{waitKinds.map(([, name]) => <th>waits for {name}</th>)}</tr>
        </thead>
        <tbody>
          {blocks.map((b) => (
            <tr key={b} class={b === chosen ? "chosen" : ""}>
              <td class="text"><button class="link" aria-pressed={b === chosen} onClick={() => choose(b === chosen ? -1 : b)}>{nameOf(b)}</button></td>
              <td>{program.instruction_first[b + 1]! - program.instruction_first[b]!}</td>
              <td>{format.percent(sum(program.busy, b) / end)}</td>
              {waitKinds.map(([key]) => <td>{format.percent(sum(program[key], b) / end)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Instructions({ program, block, first }: { program: ProgramData; block: number; first: number }) {
  const begin = program.instruction_first[block]!, end = program.instruction_first[block + 1]!;
  const most = 500;
  const after = (i: number) => {
    const list: string[] = [];
    for (let d = program.dependency_first[i]!; d < program.dependency_first[i + 1]!; d++) list.push(`${program.dependency_block[d]}.${program.dependency_index[d]}`);
    return list.join(", ");
  };
  return (
    <>
      <h3>Instructions of threadblock {block - first}, channel {program.channel[block]}</h3>
      <div class="scroll tall" tabIndex={0} role="region" aria-label="Instructions">
        <table>
          <thead>
            <tr><th>#</th><th class="text">instruction</th><th>chunks</th><th class="text">from</th><th class="text">to</th><th class="text">after</th><th>starts</th><th>ends</th><th>works</th>{waitKinds.map(([, name]) => <th>{name}</th>)}</tr>
          </thead>
          <tbody>
            {[...Array(Math.min(end - begin, most)).keys()].map((k) => {
              const i = begin + k;
              return (
                <tr key={k}>
                  <td>{k}</td><td class="text"><code>{opcodeName(program.op[i]!)}</code></td><td>{program.count[i]}</td>
                  <td class="text">{operandName(program.from_buffer[i]!, program.from[i]!)}</td><td class="text">{operandName(program.to_buffer[i]!, program.to[i]!)}</td>
                  <td class="text">{after(i)}</td>
                  <td>{format.time(program.start[i]!)}</td><td>{format.time(program.end[i]!)}</td><td>{format.time(program.busy[i]!)}</td>
                  {waitKinds.map(([key]) => <td>{program[key][i] ? format.time(program[key][i]!) : ""}</td>)}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      <p class="soft">After: threadblock.instruction that must be done first. Times are sums over {format.counted(program.passes, "pass", "passes")}.{end - begin > most ? ` ${format.count(end - begin - most)} more instructions are not listed.` : ""}</p>
    </>
  );
}
