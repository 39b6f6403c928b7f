// The page of `compare --html`: which engine to use on this machine, or what several machines can do, and how far from the
// bound that is.
import { useEffect } from "preact/hooks";
import * as format from "../shared/format";
import { Icon } from "../shared/icons";
import { HelpDialog, openHelp, useShortcuts, type Shortcut } from "../shared/keyboard";
import { switchTheme, theme } from "../shared/theme";
import { Tooltip } from "../shared/tooltip";
import { Charts } from "./charts";
import { Machine } from "../shared/machine";
import { MadeBy } from "../shared/made_by";
import { atFirst, chosen, cost, costs, cursor, data, groups, machines, one, several, shown, shownGroups, sizes, timesAreOf, timesOf, title } from "./state";
import { AllRows, Answer, Front } from "./tables";

// The engine after the chosen one among the engines that are shown.
function next(direction: 1 | -1) {
  const list = shown.value.filter((engine) => engine.group !== "auto");
  const at = chosen.value ? list.indexOf(chosen.value) : direction > 0 ? -1 : 0;
  chosen.value = list[(at + direction + list.length) % list.length] ?? null;
}
const moveCursor = (by: number) => (cursor.value = Math.min(Math.max(cursor.value + by, 0), sizes.length - 1));

const shortcuts: Shortcut[] = [
  { keys: ["ArrowRight"], shown: "\u2192", does: "read off the next size", run: () => moveCursor(1) },
  { keys: ["ArrowLeft"], shown: "\u2190", does: "read off the size before", run: () => moveCursor(-1) },
  { keys: ["n"], shown: "N", does: "the next engine stands out", run: () => next(1) },
  { keys: ["p"], shown: "P", does: "the engine before stands out", run: () => next(-1) },
  { keys: ["a"], shown: "A", does: "show all engines, or those of the start", run: () => (shownGroups.value = shownGroups.value.size === groups.length ? atFirst : new Set(groups.map(({ name }) => name))) },
  ...(costs.length > 1 ? [{ keys: ["m"], shown: "M", does: "time against messages, or threadblocks", run: () => (cost.value = costs[(costs.indexOf(cost.value!) + 1) % costs.length]!) }] : []),
  { keys: ["Escape"], shown: "Esc", does: "no engine stands out", run: () => (chosen.value = null) },
  { keys: ["t"], shown: "T", does: "switch between light and dark", run: switchTheme },
];

export function Page() {
  useShortcuts(shortcuts);
  useEffect(() => {
    document.title = `${title} \u2013 XCCL`;
  }, []);
  return (
    <>
      <header class="top">
        <div>
          <h1>{title}</h1>
          <p class="soft">{several ? machines.map(({ name }) => name).join(", ") : `${format.counted(machines[0]!.ranks, "rank")}, ${format.counted(data.engines.filter(({ measured }) => !measured).length, "engine")}`}, {one ? format.size(sizes[0]!) : `${format.size(sizes[0]!)} to ${format.size(sizes.at(-1)!)}`}, {data.model} model{!several && machines[0]!.machine ? `, programs on ${machines[0]!.machine}` : ""}</p>
          {data.notes.map((note) => <p key={note} class="soft">{note}</p>)}
        </div>
        <div class="buttons">
          <button onClick={openHelp} aria-haspopup="dialog">Keys</button>
          <button class="icon" onClick={switchTheme} aria-label={theme.value === "dark" ? "Light theme" : "Dark theme"} title="Light or dark (T)"><Icon name={theme.value === "dark" ? "sun" : "moon"} /></button>
        </div>
      </header>
      <main>
        <Charts />
        <Answer />
        {!one && <Front />}
        <AllRows />
        {machines.map((machine, i) => <Machine key={machine.name} {...machine} {...(several ? { id: `machine-${i}` } : {})} />)}
        <MadeBy command={data.command} version={data.version} leftOut={data.left_out} facts={[
          ...(several
            ? machines.map(({ name, ranks, machine }): [string, string] => [name, `${format.counted(ranks, "rank")}; simulated times of ${timesOf(machine)}`])
            : [["times", `simulated, of ${timesAreOf}`] as [string, string]]),
          ...data.engines.filter(({ measured }) => measured).map(({ name }): [string, string] => [name, "out of place, as nccl-tests wrote them; not simulated"]),
          ["model", data.model],
          ["bound", several ? "no plan for that machine can be faster in this model of links" : "no plan can be faster in this model of links"],
        ]} />
      </main>
      <Tooltip />
      <HelpDialog shortcuts={shortcuts} />
    </>
  );
}
