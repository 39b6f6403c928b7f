// The whole page: what the plan is, how good it is and why, the machine, the time, and the details in tabs.
import { useEffect, useRef } from "preact/hooks";
import { useSignal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import * as format from "../shared/format";
import { HelpDialog, openHelp, useShortcuts, type Shortcut } from "../shared/keyboard";
import { switchTheme, theme } from "../shared/theme";
import { Tooltip } from "../shared/tooltip";
import { Book } from "./book";
import { Icon } from "../shared/icons";
import { Matrix } from "./matrix";
import { ProgramPanel } from "./program_panel";
import { announcement, colourBy, follow, model, now, planIndex, playing, runClock, seek, step, toggleFollow, togglePlay } from "./state";
import { LinkTable, MessageTable, PlanFacts, RankTable } from "./tables";
import { Timeline, playheadShare, showAllTime, zoomTimeline } from "./timeline";
import { TopologyPanel } from "./topology_panel";
import { Transport, faster, situation } from "./transport";
import { Verdict, WhyPanel } from "./why";

const shortcuts: Shortcut[] = [
  { keys: [" ", "k"], shown: "Space", does: "play or pause", run: togglePlay },
  { keys: ["ArrowRight", "."], shown: "\u2192", does: "to the next arrival", run: () => step(1) },
  { keys: ["ArrowLeft", ","], shown: "\u2190", does: "to the arrival before", run: () => step(-1) },
  { keys: ["Home"], shown: "Home", does: "to the start", run: () => seek(0) },
  { keys: ["End"], shown: "End", does: "to the end", run: () => seek(model.value.end) },
  { keys: ["]"], shown: "]", does: "play faster", run: () => faster(1) },
  { keys: ["["], shown: "[", does: "play slower", run: () => faster(-1) },
  { keys: ["+", "="], shown: "+", does: "zoom into the timeline", run: () => zoomTimeline(2, playheadShare(model.value.end)) },
  { keys: ["-"], shown: "-", does: "zoom out of the timeline", run: () => zoomTimeline(1 / 2) },
  { keys: ["0"], shown: "0", does: "show all time", run: showAllTime },
  { keys: ["c"], shown: "C", does: "show the critical path", run: () => toggleFollow({ kind: "critical" }) },
  { keys: ["l"], shown: "L", does: "links show the load now, or of the run", run: () => (colourBy.value = colourBy.value === "now" ? "run" : "now") },
  { keys: ["Escape"], shown: "Esc", does: "follow nothing", run: () => (follow.value = { kind: "none" }) },
  { keys: ["t"], shown: "T", does: "switch between light and dark", run: switchTheme },
];

export function Page() {
  useShortcuts(shortcuts);
  useEffect(runClock, []);
  const { collective, topology, facts, made_by: made } = model.value.data;
  useEffect(() => {
    document.title = `${collective.name} on ${topology.name} \u2013 XCCL`;
  }, [collective, topology]);
  // Says where the clock stopped, a moment after it did.
  useSignalEffect(() => {
    if (playing.value) return;
    const at = now.value;
    const timer = setTimeout(() => (announcement.value = `${format.time(at, 4, model.value.end)}: ${situation()}`), 400);
    return () => clearTimeout(timer);
  });
  return (
    <>
      <header class="top">
        <div>
          <h1>{collective.name} on {topology.name}</h1>
          <p class="soft">
            {format.counted(collective.members.length, "rank")}, {format.size(facts.size_bytes)}, engine {made.engine}, {made.model} model{made.machine ? `, program for ${made.machine}` : ""}
          </p>
        </div>
        <div class="buttons">
          <button onClick={openHelp} aria-haspopup="dialog">Keys</button>
          <button class="icon" onClick={switchTheme} aria-label={theme.value === "dark" ? "Light theme" : "Dark theme"} title="Light or dark (T)"><Icon name={theme.value === "dark" ? "sun" : "moon"} /></button>
        </div>
      </header>
      <main>
        <Book />
        <Verdict />
        <div class="upper">
          <TopologyPanel key={`machine-${planIndex.value}`} />
          <WhyPanel />
        </div>
        <Timeline />
        <Tabs key={`tabs-${planIndex.value}`} />
      </main>
      <Transport />
      <Tooltip />
      <HelpDialog shortcuts={shortcuts} />
    </>
  );
}

const tabs: { name: string; body: () => ComponentChildren }[] = [
  { name: "Chunks", body: () => <Matrix /> },
  { name: "Threadblocks", body: () => <ProgramPanel /> },
  { name: "Links", body: () => <LinkTable /> },
  { name: "Ranks", body: () => <RankTable /> },
  { name: "Messages", body: () => <MessageTable /> },
  { name: "Plan", body: () => <PlanFacts /> },
];

function Tabs() {
  const chosen = useSignal(0);
  const list = useRef<HTMLDivElement>(null);
  const move = (to: number) => {
    chosen.value = (to + tabs.length) % tabs.length;
    (list.current!.children[chosen.value] as HTMLElement).focus();
  };
  return (
    <section class="card details" aria-label="Details">
      <div class="tabs" role="tablist" aria-label="Details" ref={list}>
        {tabs.map(({ name }, i) => (
          <button key={name} role="tab" id={`tab-${i}`} aria-selected={chosen.value === i} aria-controls="tab-body" tabIndex={chosen.value === i ? 0 : -1}
            onClick={() => (chosen.value = i)}
            onKeyDown={(e) => {
              if (e.key === "ArrowRight") move(chosen.value + 1);
              else if (e.key === "ArrowLeft") move(chosen.value - 1);
              else return;
              e.preventDefault();
              e.stopPropagation();
            }}>{name}</button>
        ))}
      </div>
      <div id="tab-body" role="tabpanel" aria-labelledby={`tab-${chosen.value}`} tabIndex={0}>{tabs[chosen.value]!.body()}</div>
    </section>
  );
}
