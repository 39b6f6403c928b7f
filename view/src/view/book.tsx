// The plans of a book, to pick from.
import { useSignal } from "@preact/signals";
import * as format from "../shared/format";
import { choosePlan, index, planIndex } from "./state";

export function Book() {
  const open = useSignal(true);
  if (index.plans.length < 2) return null;
  return (
    <details class="card book" open={open.value} onToggle={(e) => (open.value = e.currentTarget.open)}>
      <summary>{format.counted(index.plans.length, "plan")} of {index.title}</summary>
      <div class="scroll" tabIndex={0} role="region" aria-label="Plans of the book">
        <table>
          <thead>
            <tr><th class="text">plan</th><th class="text">collective</th><th>ranks</th><th>size</th><th class="text">engine</th><th>time</th><th>time &divide; bound</th><th class="text">serves</th></tr>
          </thead>
          <tbody>
            {index.plans.map((plan, i) => (
              <tr key={plan.name} class={i === planIndex.value ? "chosen" : ""}>
                <td class="text"><button class="link" aria-current={i === planIndex.value ? "true" : "false"} onClick={() => choosePlan(i)}>{plan.name}</button></td>
                <td class="text">{plan.collective}</td>
                <td>{format.count(plan.ranks)}</td>
                <td>{format.size(plan.size_bytes)}</td>
                <td class="text">{plan.engine}</td>
                <td>{format.time(plan.time_ps)}</td>
                <td>{plan.bound_ps > 0 ? format.significant(plan.time_ps / plan.bound_ps, 3) : ""}</td>
                <td class="text">{plan.serves}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
