// Light or dark: the system's choice, or the reader's, which is remembered where the browser lets a file do so.
import { computed, signal } from "@preact/signals";

export type Theme = "light" | "dark";
const key = "xccl-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

function remembered(): Theme | undefined {
  try {
    const theme = localStorage.getItem(key);
    return theme === "light" || theme === "dark" ? theme : undefined;
  } catch {
    return undefined; // storage is closed to this page
  }
}

let chosen = remembered();
export const theme = signal<Theme>(chosen ?? (system.matches ? "dark" : "light"));

function apply() {
  document.documentElement.dataset["theme"] = theme.value;
}
apply();
system.addEventListener("change", () => {
  if (chosen) return;
  theme.value = system.matches ? "dark" : "light";
  apply();
});

export function switchTheme() {
  chosen = theme.value === "dark" ? "light" : "dark";
  theme.value = chosen;
  apply();
  try {
    localStorage.setItem(key, chosen);
  } catch {
    // The choice holds for this visit.
  }
}

// The value of a colour of base.css in the theme that is shown, for canvas and exported pictures: "rgb(…)".
export function colourOf(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

// All colours of base.css in the theme that is shown.
const names = ["paper", "panel", "raised", "ink", "soft", "line", "strong-line", "accent", "on-accent", "warn", "good", "critical"] as const;
export type Palette = Record<(typeof names)[number], string>;
export const palette = computed<Palette>(() => {
  void theme.value;
  return Object.fromEntries(names.map((name) => [name, colourOf(name)])) as Palette;
});
