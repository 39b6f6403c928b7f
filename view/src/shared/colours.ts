// Colours that people with any colour vision tell apart (Okabe and Ito, 2008), darkened for light paper so that each
// has a contrast of 3 or more with it, and a scale of load that also rises in lightness.
import type { Theme } from "./theme";

export const categories: Record<Theme, readonly string[]> = {
  light: ["#0072b2", "#d55e00", "#00845f", "#b5518f", "#a87400", "#2b86bd", "#6b6b00", "#50565c", "#16191c"],
  dark: ["#56b4e9", "#ff8a3d", "#2fc79a", "#e39ac6", "#e69f00", "#8fd0f5", "#f0e442", "#b4bac1", "#ffffff"],
};

export function category(index: number, theme: Theme): string {
  const colours = categories[theme];
  return colours[index % colours.length]!;
}

// Stops of the scale of load from idle to full, as [red, green, blue].
type Rgb = readonly [number, number, number];
const loads: Record<Theme, readonly Rgb[]> = {
  light: [[205, 211, 217], [125, 176, 214], [46, 120, 178], [125, 60, 140], [190, 30, 60]],
  dark: [[72, 80, 88], [52, 110, 160], [72, 160, 214], [196, 150, 230], [255, 150, 110]],
};

// The colour of a load from 0 (idle) to 1 (all of its bandwidth).
export function loadColour(load: number, theme: Theme): string {
  const stops = loads[theme];
  const at = Math.min(Math.max(load, 0), 1) * (stops.length - 1);
  const i = Math.min(Math.floor(at), stops.length - 2);
  const mix = (k: 0 | 1 | 2) => Math.round(stops[i]![k] + (stops[i + 1]![k] - stops[i]![k]) * (at - i));
  return `rgb(${mix(0)}, ${mix(1)}, ${mix(2)})`;
}

export function loadGradient(theme: Theme): string {
  return `linear-gradient(90deg, ${loads[theme].map((c) => `rgb(${c.join(",")})`).join(", ")})`;
}
