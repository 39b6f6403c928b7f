// Numbers for people. Times are picoseconds, sizes bytes, bandwidths bytes per second, as everywhere in XCCL.

const gap = "\u00a0"; // a number and its unit stay on one line

// At most `digits` significant digits, without trailing zeros.
export function significant(value: number, digits = 4): string {
  if (value === 0 || !Number.isFinite(value)) return String(value);
  const text = Number(value.toPrecision(digits));
  return Math.abs(text) >= 1e15 || Math.abs(text) < 1e-6 ? text.toExponential() : String(text);
}

const timeUnits: [number, string][] = [[1e12, "s"], [1e9, "ms"], [1e6, "us"], [1e3, "ns"], [1, "ps"]];
// "391.5 us": the unit is that of `of`, where given, so that times beside each other compare.
export function time(ps: number, digits = 4, of = ps): string {
  const unit = of === 0 ? { ps: 1e6, name: "\u00b5s" } : timeUnit(of);
  return `${significant(ps / unit.ps, digits)}${gap}${unit.name}`;
}

const sizeUnits = ["B", "KiB", "MiB", "GiB", "TiB"];
// "64 MiB": powers of 2.
export function size(bytes: number, digits = 4): string {
  let unit = 0;
  while (bytes >= 1024 && unit < sizeUnits.length - 1) {
    bytes /= 1024;
    unit++;
  }
  return `${significant(bytes, digits)}${gap}${sizeUnits[unit]}`;
}

// "450 GB/s": powers of 10.
export function bandwidth(bytesPerSecond: number, digits = 4): string {
  const units: [number, string][] = [[1e12, "TB/s"], [1e9, "GB/s"], [1e6, "MB/s"], [1e3, "kB/s"]];
  const [scale, unit] = units.find(([s]) => bytesPerSecond >= s) ?? [1, "B/s"];
  return `${significant(bytesPerSecond / scale, digits)}${gap}${unit}`;
}

// The unit in which a time is shown, and its picoseconds.
export function timeUnit(ps: number): { ps: number; name: string } {
  const [scale, unit] = timeUnits.find(([s]) => Math.abs(ps) >= s) ?? [1, "ps"];
  return { ps: scale, name: unit === "us" ? "\u00b5s" : unit };
}

export function count(n: number): string {
  return n.toLocaleString("en");
}

// "1 step", "2 steps"; `many` where it is not "one" + "s".
export function counted(n: number, one: string, many = one + "s"): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

export function percent(part: number): string {
  return `${significant(100 * part, 2)}${gap}%`;
}

// "0-3, 5": ascending numbers, runs folded.
export function ranges(numbers: readonly number[]): string {
  const runs: string[] = [];
  for (let i = 0; i < numbers.length; ) {
    let j = i;
    while (j + 1 < numbers.length && numbers[j + 1] === numbers[j]! + 1) j++;
    runs.push(i === j ? `${numbers[i]}` : `${numbers[i]}\u2013${numbers[j]}`);
    i = j + 1;
  }
  return runs.join(", ");
}
