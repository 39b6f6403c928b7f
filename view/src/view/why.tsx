// The panel "Why": the plan's time beside the bound, and the chain of events that ends with the last arrival.
import { useSignal } from "@preact/signals";
import { category } from "../shared/colours";
import * as format from "../shared/format";
import { theme } from "../shared/theme";
import type { CriticalData } from "./data";
import { boundBy, kindsOf, reasonsOf, sharesOf, smallPrint } from "./reasons";
import { follow, model, seek, toggleFollow } from "./state";
import { kindColour } from "./timeline_rows";
import { kindName, pieceName } from "./words";

const colourOfKind = (letter: string) => category(kindColour[letter] ?? 7, theme.value);

export function Verdict() {
  const { facts, collective, program_critical: ofProgram } = model.value.data;
  const time = facts.program_time_ps ?? facts.time_ps;
  const ratio = facts.bound_ps > 0 ? time / facts.bound_ps : 1;
  const busbw = time > 0 ? ((facts.size_bytes * 1e12) / time) * facts.bus_factor : 0;
  const isProgram = facts.program_time_ps !== null;
  return (
    <section class="verdict" aria-label="Time and bound">
      <dl class="numbers">
        <Number name={isProgram ? "time" : "time of the schedule"} value={format.time(time)}
          note={isProgram ? `of the program; ${format.time(facts.time_ps)} on ideal links` : "simulated, on ideal links"} />
        <Number name="lower bound" value={format.time(facts.bound_ps)}
          note={`by ${boundBy(facts)}`} />
        <Number name="time &divide; bound" value={format.significant(ratio, 4)}
          note={!isProgram && facts.meets_bound ? "no plan is faster" : ratio < 1.0005 ? "meets the bound" : `at most ${format.percent(1 - 1 / ratio)} to gain`} />
        <Number name="bus bandwidth" value={format.bandwidth(busbw)} note={`${format.size(facts.size_bytes)} ${collective.name}`} />
      </dl>
      <Bar path={ofProgram ?? model.value.critical} bound={facts.bound_ps} of={isProgram && !ofProgram ? "schedule" : ""} />
    </section>
  );
}

// The time in parts, by what the last arrival waited for, with the bound on it.
function Bar({ path, bound, of }: { path: CriticalData; bound: number; of: string }) {
  const total = path.end.at(-1) ?? 0;
  if (total === 0) return null;
  const parts = kindsOf(path);
  const longest = Math.max(total, bound);
  const words = parts.map(({ name, ps }) => `${name} ${format.percent(ps / total)}`).join(", ");
  return (
    <div class="bar-block">
      <div class="bar" role="img" aria-label={`What the last arrival waited for: ${words}. The bound is at ${format.percent(bound / longest)} of the bar.`}>
        {parts.map(({ letter, name, ps }) => (
          <span class="part" key={letter} title={`${name}: ${format.time(ps)}`} style={{ width: `${(100 * ps) / longest}%`, background: colourOfKind(letter) }} />
        ))}
        <span class="mark" style={{ left: `${(100 * bound) / longest}%` }}><span class={bound / longest > 0.8 ? "left" : ""}>bound</span></span>
      </div>
      <ul class="legend">
        {parts.map(({ letter, name, ps }) => (
          <li key={letter}><span class="swatch" style={{ background: colourOfKind(letter) }} />{name} <b>{format.percent(ps / total)}</b></li>
        ))}
        {of && <li class="soft">of the {of}'s {format.time(total)}</li>}
      </ul>
    </div>
  );
}

function Number({ name, value, note }: { name: string; value: string; note: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd><b>{value}</b><span class="soft">{note}</span></dd>
    </div>
  );
}

export function WhyPanel() {
  const { playsProgram, played, data: { program_critical: ofProgram, critical: ofSchedule } } = model.value;
  const level = useSignal<"program" | "schedule">("program");
  const both = ofProgram !== null && ofSchedule !== null && ofProgram.kind.length > 0 && ofSchedule.kind.length > 0;
  const isProgram = ofProgram !== null && (!both || level.value === "program");
  const path = isProgram ? ofProgram : ofSchedule ?? model.value.critical;
  return (
    <section class="card why" aria-labelledby="why-title">
      <div class="card-head">
        <h2 id="why-title">Why not faster</h2>
        {model.value.critical.kind.length > 0 && (
          <button aria-pressed={follow.value.kind === "critical"} title={`Show the ${playsProgram ? "program" : "schedule"}'s critical path on the machine and the timeline (C)`} onClick={() => toggleFollow({ kind: "critical" })}>Show path</button>
        )}
      </div>
      <div class="why-body">
        {reasonsOf(model.value).map((sentence) => <p>{sentence.split("`").map((part, i) => (i % 2 === 1 ? <code>{part}</code> : part))}</p>)}
        {path.kind.length > 0 && (
          <>
            <label class="inline"><span>The last arrival of the</span>
              {!both ? <b>{isProgram ? "program" : "schedule"}</b> : (
                <select aria-label="Critical path of" value={level.value} onChange={(e) => (level.value = e.currentTarget.value as "program" | "schedule")}>
                  <option value="program">program</option>
                  <option value="schedule">schedule</option>
                </select>
              )}
            </label>
            <Shares path={path} />
            {path.stretched && <p class="soft">The chain is that of fewer segments, stretched to the whole time.</p>}
            <Pieces path={path} seeks={isProgram === playsProgram} />
          </>
        )}
        {[...smallPrint(model.value), ...played.notes].map((note) => <p class="soft small-print">{note}</p>)}
      </div>
    </section>
  );
}

function Shares({ path }: { path: CriticalData }) {
  const list = sharesOf(model.value, path);
  const total = path.end.at(-1)!;
  const shown = list.slice(0, 5);
  return (
    <>
      <table class="shares">
        <caption class="unseen">What the last arrival waited for, longest first</caption>
        <thead><tr><th class="text">waits for</th><th>time</th><th>share</th></tr></thead>
        <tbody>
          {shown.map((share) => (
            <tr key={share.kind + share.place}>
              <td class="text">
                <div>
                  <span class="swatch" style={{ background: colourOfKind(share.kind) }} />
                  <span>{kindName(share.kind)}{share.pieces > 1 ? `, ${format.count(share.pieces)} times` : ""}{share.place && <br />}
                    {share.place && <button class="link" onClick={() => toggleFollow(share.link >= 0 ? { kind: "link", link: share.link } : { kind: "rank", rank: share.rank })}>{share.place}</button>}
                  </span>
                </div>
              </td>
              <td>{format.time(share.ps)}</td>
              <td>{format.percent(share.ps / total)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {list.length > shown.length && <p class="soft">and {format.counted(list.length - shown.length, "more place")}.</p>}
    </>
  );
}

// The whole chain in order of time. Times of what is played can be gone to.
function Pieces({ path, seeks }: { path: CriticalData; seeks: boolean }) {
  const open = useSignal(false);
  const most = 400;
  const rows = [...Array(Math.min(path.kind.length, most)).keys()];
  const end = path.end.at(-1)!;
  const at = (i: number) => format.time(path.start[i]!, 4, end);
  return (
    <details open={open.value} onToggle={(e) => (open.value = e.currentTarget.open)}>
      <summary>All {format.counted(path.kind.length, "piece")}, in order of time</summary>
      {open.value && (
        <ol class="pieces">
          {rows.map((i) => (
            <li key={i}>
              {seeks ? <button class="link" onClick={() => seek(path.start[i]!)}>{at(i)}</button> : <span>{at(i)}</span>}
              <span class="swatch" style={{ background: colourOfKind(path.kind[i]!) }} />
              <span>{kindName(path.kind[i]!)} {format.time(path.end[i]! - path.start[i]!)}<br />
                <span class="soft">{pieceName(model.value, path, i)}</span></span>
            </li>
          ))}
        </ol>
      )}
      {open.value && path.kind.length > most && <p class="soft">and {format.count(path.kind.length - most)} more.</p>}
    </details>
  );
}
