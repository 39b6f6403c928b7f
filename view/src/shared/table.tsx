// A table that sorts, filters and is saved as CSV.
import { useMemo } from "preact/hooks";
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { saveText } from "./download";
import * as format from "./format";

export interface Column<Row> {
  name: string;
  text?: boolean;
  value: (row: Row) => number | string; // sorts, and goes into the CSV
  show?: (row: Row) => string;
  click?: (row: Row) => void;
}

// `start`: the column that sorts at first, the greatest value first unless `ascending`. `tools` stand beside the filter.
export function Table<Row>({ rows, columns, caption, file, start, ascending = false, tools }: {
  rows: Row[]; columns: Column<Row>[]; caption: string; file: string; start: number; ascending?: boolean; tools?: ComponentChildren;
}) {
  const by = useSignal(start);
  const descending = useSignal(!ascending);
  const filter = useSignal("");
  const pages = useSignal(1);
  const column = columns[by.value]!;
  const text = (row: Row, c: Column<Row>) => (c.show ? c.show(row) : String(c.value(row)));
  const found = useMemo(() => {
    const wanted = filter.value.trim().toLowerCase();
    const kept = wanted ? rows.filter((row) => columns.some((c) => c.text && text(row, c).toLowerCase().includes(wanted))) : [...rows];
    const sign = descending.value ? -1 : 1;
    return kept.sort((a, b) => {
      const x = column.value(a), y = column.value(b);
      return sign * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true }));
    });
  }, [rows, filter.value, by.value, descending.value]);
  const most = 100 * pages.value;
  const csv = () => {
    const quote = (value: string | number) => (typeof value === "string" && /[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : String(value));
    saveText([columns.map((c) => quote(c.name)), ...found.map((row) => columns.map((c) => quote(c.value(row))))].map((r) => r.join(",")).join("\n") + "\n", "text/csv", file);
  };
  return (
    <>
      <div class="tools">
        <input type="search" class="filter" placeholder="filter" aria-label={`Filter ${caption}`} value={filter.value} onInput={(e) => (filter.value = e.currentTarget.value)} />
        {tools}
        <span class="soft" role="status">{format.count(found.length)} of {format.count(rows.length)}</span>
        <button onClick={csv}>CSV</button>
      </div>
      <div class="scroll tall" tabIndex={0} role="region" aria-label={caption}>
        <table>
          <caption class="unseen">{caption}</caption>
          <thead>
            <tr>
              {columns.map((c, i) => (
                <th key={c.name} class={c.text ? "text" : ""} aria-sort={by.value === i ? (descending.value ? "descending" : "ascending") : "none"}>
                  <button class="link sort" onClick={() => {
                    if (by.value === i) descending.value = !descending.value;
                    else {
                      by.value = i;
                      descending.value = !c.text;
                    }
                  }}>{c.name}<span class="arrow" aria-hidden="true">{by.value === i ? (descending.value ? " \u2193" : " \u2191") : ""}</span></button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {found.slice(0, most).map((row, i) => (
              <tr key={i}>
                {columns.map((c) => (
                  <td key={c.name} class={c.text ? "text" : ""}>{c.click ? <button class="link" onClick={() => c.click!(row)}>{text(row, c)}</button> : text(row, c)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {found.length > most && <button onClick={() => pages.value++}>Show {format.count(Math.min(100, found.length - most))} more</button>}
    </>
  );
}
