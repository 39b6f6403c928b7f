// Axes of charts: logarithmic, or linear from 0.
import { scaleLinear } from "d3-scale";

const whole = (value: number) => Number(value.toPrecision(12));

// A logarithmic axis: the pixel of a value between two pixels.
export class Axis {
  readonly low: number;
  readonly high: number;
  constructor(values: number[], readonly from: number, readonly to: number) {
    const seen = values.filter((value) => value > 0 && Number.isFinite(value));
    const low = seen.length > 0 ? Math.min(...seen) : 1, high = seen.length > 0 ? Math.max(...seen) : 1;
    const room = high > low * 1.05 ? (high / low) ** 0.04 : 1.5;
    this.low = low / room;
    this.high = high * room;
  }
  at(value: number): number {
    return this.from + (Math.log(value / this.low) / Math.log(this.high / this.low)) * (this.to - this.from);
  }
  // Powers of ten; where these are fewer than three, also some between them; where these are few too, equal steps.
  ticks(): number[] {
    for (const steps of [[1], [1, 2, 5], [1, 1.5, 2, 3, 5, 7]]) {
      const found: number[] = [];
      for (let power = 10 ** Math.floor(Math.log10(this.low)); power <= this.high; power *= 10)
        for (const step of steps) if (step * power >= this.low && step * power <= this.high) found.push(whole(step * power));
      if (found.length >= 3) return found;
    }
    return scaleLinear([this.low, this.high], [0, 1]).ticks(4).map(whole);
  }
}

// A linear axis from 0.
export class FromZero {
  private readonly scale;
  constructor(values: number[], readonly from: number, readonly to: number) {
    this.scale = scaleLinear([0, Math.max(...values.filter(Number.isFinite), 0) || 1], [from, to]);
  }
  at(value: number): number {
    return this.scale(value);
  }
  // About `width` pixels apart, but at least three.
  ticks(width: number): number[] {
    for (let wanted = Math.min(6, Math.floor((this.to - this.from) / width)); ; wanted++) {
      const found = this.scale.ticks(Math.max(2, wanted));
      if (found.length >= 3) return found;
    }
  }
}

// The ticks whose texts do not touch, each `widths` wide around its pixel.
export function apart<T>(ticks: T[], at: (tick: T) => number, width: (tick: T) => number): T[] {
  let last = -Infinity;
  return ticks.filter((tick) => {
    const half = width(tick) / 2;
    if (at(tick) - half < last + 8) return false;
    last = at(tick) + half;
    return true;
  });
}
