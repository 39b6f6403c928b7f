// A canvas that fills its box, sharp on every screen. It is drawn again when its size or a signal that `draw` reads
// changes.
import { useEffect, useRef } from "preact/hooks";
import { effect, signal } from "@preact/signals";
import type { RefObject } from "preact";

export type Draw = (context: CanvasRenderingContext2D, width: number, height: number) => void;

export function useCanvas(draw: Draw): RefObject<HTMLCanvasElement | null> {
  const canvas = useRef<HTMLCanvasElement>(null);
  const latest = useRef(draw);
  const drawn = useRef(signal(0));
  latest.current = draw;
  useEffect(() => {
    const element = canvas.current!;
    const size = signal({ width: 0, height: 0 });
    const observer = new ResizeObserver(([entry]) => {
      const { width, height } = entry!.contentRect;
      if (width !== size.value.width || height !== size.value.height) size.value = { width, height };
    });
    observer.observe(element);
    const stop = effect(() => {
      void drawn.current.value;
      const { width, height } = size.value;
      if (width === 0 || height === 0) return;
      const scale = devicePixelRatio || 1;
      const wide = Math.round(width * scale), high = Math.round(height * scale);
      if (element.width !== wide || element.height !== high) {
        element.width = wide;
        element.height = high;
      }
      const context = element.getContext("2d")!;
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.clearRect(0, 0, width, height);
      delete element.dataset["cut"];
      latest.current(context, width, height);
    });
    return () => {
      observer.disconnect();
      stop();
    };
  }, []);
  // A render may change what `draw` closes over.
  useEffect(() => {
    drawn.current.value++;
  });
  return canvas;
}

// The width that the widest of some texts takes, within limits.
export function widest(context: CanvasRenderingContext2D, texts: Iterable<string>, least: number, most: number): number {
  let width = least;
  for (const text of texts) width = Math.max(width, Math.ceil(context.measureText(text).width));
  return Math.min(width, most);
}

// Text that is cut with an ellipsis where it does not fit. The canvas says so, for tests.
export function fitText(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  context.canvas.dataset["cut"] = text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(text.slice(0, middle) + "\u2026").width <= width) low = middle;
    else high = middle - 1;
  }
  return low === 0 ? "" : text.slice(0, low) + "\u2026";
}
