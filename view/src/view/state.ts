// The reader's choices, and the time that is shown. Every panel reads these signals and redraws itself.
import { computed, signal } from "@preact/signals";
import { readPageData } from "../shared/page_data";
import type { Index, PlanData } from "./data";
import { Model, type Follow } from "./model";

export const index = readPageData<Index>();
const models = new Map<number, Model>();

function modelOf(plan: number): Model {
  let model = models.get(plan);
  if (!model) {
    const element = document.getElementById(`plan-${plan}`)!;
    model = new Model(JSON.parse(element.textContent!) as PlanData);
    models.set(plan, model);
  }
  return model;
}

export const planIndex = signal(0);
export const model = computed(() => modelOf(planIndex.value));

export const now = signal(0); // picoseconds
export const playing = signal(false);
export const speed = signal(1); // 1: the whole run in ten seconds
export const follow = signal<Follow>({ kind: "none" });
export const followed = computed(() => model.value.followed(follow.value));
export const colourBy = signal<"now" | "run">("now");

export const announcement = signal(""); // for screen readers

export function choosePlan(plan: number) {
  playing.value = false;
  now.value = 0;
  follow.value = { kind: "none" };
  planIndex.value = plan;
}

export function seek(at: number) {
  now.value = Math.min(Math.max(at, 0), model.value.end);
}

export function togglePlay() {
  if (!playing.value && now.value >= model.value.end) now.value = 0;
  playing.value = !playing.value;
}

export function step(direction: 1 | -1) {
  playing.value = false;
  seek(model.value.moment(now.value, direction));
}

export function toggleFollow(next: Follow) {
  follow.value = JSON.stringify(follow.value) === JSON.stringify(next) ? { kind: "none" } : next;
}

// Runs the clock while it plays.
const wholeRun = 10_000; // milliseconds at speed 1
export function runClock() {
  let last: number | undefined;
  const tick = (at: number) => {
    if (playing.value) {
      const passed = last === undefined ? 0 : Math.min(at - last, 100);
      const next = now.value + (passed / wholeRun) * speed.value * model.value.end;
      if (next >= model.value.end) {
        now.value = model.value.end;
        playing.value = false;
      } else {
        now.value = next;
      }
      last = at;
    } else {
      last = undefined;
    }
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
}
