// The controls of time: play, step, scrub and speed; and the thing that is followed.
import { announcement, follow, model, now, playing, seek, speed, step, togglePlay, followed } from "./state";
import { Icon } from "../shared/icons";
import * as format from "../shared/format";
import type { Follow } from "./model";

const speeds = [0.1, 0.25, 0.5, 1, 2, 4];

export function faster(direction: 1 | -1) {
  const i = speeds.indexOf(speed.value);
  speed.value = speeds[Math.min(speeds.length - 1, Math.max(0, i + direction))]!;
}

// The situation at the time shown, in words: "3 links busy, 2 of 8 ranks complete".
export function situation(): string {
  const current = model.value;
  let busy = 0, complete = 0, needing = 0;
  for (const link of current.usedLinks) if (current.loadNow(link, now.value) > 0.02) busy++;
  current.holdings.seek(now.value);
  for (let rank = 0; rank < current.numRanks; rank++) {
    const share = current.holdings.ofRank(rank);
    if (share < 0) continue;
    needing++;
    if (share > 0.9995) complete++;
  }
  return `${format.counted(busy, "link")} busy, ${format.count(complete)} of ${format.counted(needing, "rank")} complete`;
}

export function Transport() {
  const current = model.value;
  const shown = `${format.time(now.value, 4, current.end)} of ${format.time(current.end)}`;
  const words = situation();
  const notch = Math.max(1, Math.floor(current.end / 2000));
  return (
    <div class="transport" role="group" aria-label="Playback" data-time={now.value}>
      <div class="keys">
        <button class="icon" aria-label="To the start" title="To the start (Home)" onClick={() => seek(0)}><Icon name="start" /></button>
        <button class="icon" aria-label="Step back" title="To the arrival before (left arrow)" onClick={() => step(-1)}><Icon name="back" /></button>
        <button class="play" aria-label={playing.value ? "Pause" : "Play"} title="Play or pause (Space)" aria-pressed={playing.value} onClick={togglePlay}>
          <Icon name={playing.value ? "pause" : "play"} />
        </button>
        <button class="icon" aria-label="Step forward" title="To the next arrival (right arrow)" onClick={() => step(1)}><Icon name="forward" /></button>
      </div>
      <div class="scrub">
        <input type="range" min="0" max={current.end} step={notch} value={now.value} aria-label="Time"
          aria-valuetext={`${shown}: ${words}`}
          onInput={(e) => {
            playing.value = false;
            // The last notch is the end, which no whole number of notches may reach.
            const at = Number(e.currentTarget.value);
            seek(at + notch > current.end ? current.end : at);
          }} />
      </div>
      <div class="readout">
        <b>{shown}</b>
        <span class="soft">{words}</span>
      </div>
      <FollowControl />
      <label class="inline speed">
        <span class="unseen">Speed</span>
        <select value={String(speed.value)} title="Speed" onChange={(e) => (speed.value = Number(e.currentTarget.value))}>
          {speeds.map((s) => <option value={String(s)}>{s}&times;</option>)}
        </select>
      </label>
      <p class="unseen" role="status">{announcement.value}</p>
    </div>
  );
}

function FollowControl() {
  const current = model.value;
  const what = follow.value;
  const chunks = current.followableChunks();
  const choose = (kind: Follow["kind"]) => {
    follow.value =
      kind === "rank" ? { kind, rank: current.data.collective.members[0] ?? 0 }
      : kind === "chunk" ? { kind, chunk: chunks[0] ?? 0 }
      : kind === "link" ? { kind, link: current.usedLinks[0] ?? 0 }
      : kind === "critical" ? { kind }
      : { kind: "none" };
  };
  return (
    <div class="follow" role="group" aria-label="Follow">
      <label class="inline">
        <span>Follow</span>
        <select value={what.kind} onChange={(e) => choose(e.currentTarget.value as Follow["kind"])}>
          <option value="none">all</option>
          <option value="critical">critical path</option>
          <option value="rank">a rank</option>
          {what.kind === "item" && <option value="item">an item</option>}
          {chunks.length > 0 && <option value="chunk">a chunk</option>}
          {current.usedLinks.length > 0 && <option value="link">a link</option>}
        </select>
      </label>
      {what.kind === "rank" && (
        <input type="number" aria-label="Rank" min="0" max={current.numRanks - 1} value={what.rank}
          onInput={(e) => {
            const rank = Number(e.currentTarget.value);
            if (Number.isInteger(rank) && rank >= 0 && rank < current.numRanks) follow.value = { kind: "rank", rank };
          }} />
      )}
      {what.kind === "chunk" && (
        <input type="number" aria-label="Chunk" min="0" max={current.played.chunks - 1} value={what.chunk}
          step={chunks.length > 1 ? chunks[1]! - chunks[0]! : 1}
          onChange={(e) => {
            const wanted = Number(e.currentTarget.value);
            const chunk = chunks.reduce((best, c) => (Math.abs(c - wanted) < Math.abs(best - wanted) ? c : best), chunks[0]!);
            follow.value = { kind: "chunk", chunk };
            e.currentTarget.value = String(chunk);
          }} />
      )}
      {what.kind === "item" && <span class="what" title={current.itemName(what.item)}>{current.itemName(what.item)}</span>}
      {what.kind === "link" && <span class="what" title={current.linkName(what.link)}>{current.linkName(what.link)}</span>}
      {what.kind !== "none" && followed.value && followed.value.links.size === 0 && <span class="soft">on no link</span>}
    </div>
  );
}
