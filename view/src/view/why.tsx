// What bounds the plan: its time beside the bound, and the chain of events that ends with the last arrival.
import { useSignal } from "@preact/signals";
import { category } from "../shared/colours";
import * as format from "../shared/format";
import { theme } from "../shared/theme";
import { kindsOf, reasonsOf, sharesOf } from "./reasons";
import { follow, model, seek, toggleFollow } from "./state";
import { kindColour } from "./timeline_rows";
import { kindName, pieceName } from "./words";

const colourOfKind = (letter: string) => category(kindColour[letter] ?? 7, theme.value);

export function Verdict() {
  const { facts, critical, collective } = model.value.data;
  const time = facts.program_time_ps ?? facts.time_ps;
  const ratio = facts.bound_ps > 0 ? time / facts.bound_ps : 1;
  const busbw = time > 0 ? ((facts.size_bytes * 1e12) / time) * facts.bus_factor : 0;
  const total = critical.end.at(-1) ?? time;
  const byKind = kindsOf(model.value);
  const longest = Math.max(total, facts.bound_ps, 1);
  return (
    <section class="verdict" aria-label="Time and bound">
      <dl class="numbers">
        <Number name={facts.program_time_ps === null ? "time" : "time of the program"} value={format.time(time)}
          note={facts.program_time_ps === null ? "simulated, on ideal links" : `schedule on ideal links ${format.time(facts.time_ps)}`} />
        <Number name="lower bound" value={format.time(facts.bound_ps)}
          note={facts.latency_ps >= facts.bandwidth_ps ? "by latency" : `bandwidth, by ${facts.bound_kind}`} />
        <Number name="time &divide; bound" value={format.significant(ratio, 4)}
          note={time === facts.time_ps && facts.meets_bound ? "no plan is faster" : ratio < 1.0005 ? "meets the bound" : `at most ${format.percent(1 - 1 / ratio)} to gain`} />
        <Number name="bus bandwidth" value={format.bandwidth(busbw)} note={`${format.size(facts.size_bytes)} ${collective.name}`} />
      </dl>
      <div class="bar-block">
        <div class="bar" role="img" aria-label={`What the last arrival waited for: ${byKind.map(({ name, ps }) => `${name} ${format.percent(ps / total)}`).join(", ")}. The bound is at ${format.percent(facts.bound_ps / longest)} of the bar.`}>
          {byKind.map(({ letter, name, ps }) => (
            <span class="part" key={letter} title={`${name}: ${format.time(ps)}`} style={{ width: `${(100 * ps) / longest}%`, background: colourOfKind(letter) }} />
          ))}
          <span class="mark" style={{ left: `${(100 * facts.bound_ps) / longest}%` }}><span class={facts.bound_ps / longest > 0.8 ? "left" : ""}>bound</span></span>
        </div>
        <ul class="legend">
          {byKind.map(({ letter, name, ps }) => (
            <li key={letter}><span class="swatch" style={{ background: colourOfKind(letter) }} />{name} <b>{format.percent(ps / total)}</b></li>
          ))}
          {critical.of === "schedule" && facts.program_time_ps !== null && <li class="soft">of the schedule's {format.time(total)}</li>}
        </ul>
      </div>
    </section>
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
  const { critical, schedule } = model.value.data;
  const all = useSignal(false);
  const list = sharesOf(model.value);
  const total = critical.end.at(-1) ?? 1;
  const shown = list.slice(0, 8);
  return (
    <section class="card why" aria-labelledby="why-title">
      <div class="card-head">
        <h2 id="why-title">Why not faster</h2>
        <button aria-pressed={follow.value.kind === "critical"} onClick={() => toggleFollow({ kind: "critical" })}>Show path</button>
      </div>
      <div class="why-body">
        {reasonsOf(model.value).map((sentence) => <p>{sentence}</p>)}
        <div class="scroll" tabIndex={0} role="region" aria-label="Shares of the critical path">
          <table class="shares">
            <caption class="unseen">What the last arrival waited for, longest first</caption>
            <thead><tr><th class="text">waited for</th><th>time</th><th>share</th></tr></thead>
            <tbody>
              {shown.map((share) => (
                <tr key={share.kind + share.place}>
                  <td class="text">
                    <span class="swatch" style={{ background: colourOfKind(share.kind) }} />
                    <span>{kindName(share.kind)}{share.pieces > 1 ? `, ${format.count(share.pieces)} times` : ""}<br />
                      {share.link >= 0 || share.rank >= 0
                        ? <button class="link" onClick={() => toggleFollow(share.link >= 0 ? { kind: "link", link: share.link } : { kind: "rank", rank: share.rank })}>{share.place}</button>
                        : null}
                    </span>
                  </td>
                  <td>{format.time(share.ps)}</td>
                  <td>{format.percent(share.ps / total)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        {list.length > shown.length && <p class="soft">and {format.counted(list.length - shown.length, "more place")}.</p>}
        {critical.stretched && <p class="soft">The chain is that of fewer segments, stretched to the whole time.</p>}
        {critical.kind.length > 0 && (
          <details open={all.value} onToggle={(e) => (all.value = e.currentTarget.open)}>
            <summary>All {format.counted(critical.kind.length, "piece")}, in order of time</summary>
            {all.value && <Pieces />}
          </details>
        )}
        {schedule.notes.map((note) => <p class="soft">{note}</p>)}
      </div>
    </section>
  );
}

function Pieces() {
  const { critical } = model.value.data;
  const most = 400;
  const rows = [...Array(Math.min(critical.kind.length, most)).keys()];
  return (
    <>
      <ol class="pieces">
        {rows.map((i) => (
          <li key={i}>
            <button class="link" onClick={() => seek(critical.start[i]!)}>{format.time(critical.start[i]!, 4, critical.end.at(-1))}</button>
            <span class="swatch" style={{ background: colourOfKind(critical.kind[i]!) }} />
            <span>{kindName(critical.kind[i]!)} {format.time(critical.end[i]! - critical.start[i]!)}<br />
              <span class="soft">{pieceName(model.value, i)}</span></span>
          </li>
        ))}
      </ol>
      {critical.kind.length > most && <p class="soft">and {format.count(critical.kind.length - most)} more.</p>}
    </>
  );
}
