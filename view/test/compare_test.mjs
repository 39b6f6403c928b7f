// The page of `xccl-synth compare --html` in a browser: node compare_test.mjs TOOL. Compares all engines on 8 ranks, over
// sizes and at one size, and tries what a reader does. Prints a line for each check; exits with 1 where one fails.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { launch, layoutFaults, open } from "./browser.mjs";

const tool = resolve(process.argv[2]);
const folder = mkdtempSync(join(tmpdir(), "xccl-compare-"));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let failed = 0;
function check(name, seen, expected = true) {
  const good = JSON.stringify(seen) === JSON.stringify(expected);
  if (!good) failed++;
  console.log(good ? `ok      ${name}` : `FAILED  ${name}: ${JSON.stringify(seen)}; expected ${JSON.stringify(expected)}`);
}

// The page, and the rows that the command printed as JSON.
function compare(name, ...args) {
  const out = execFileSync(tool, ["compare", ...args, "--json", "--html", `${name}.html`], { cwd: folder, stdio: ["ignore", "pipe", "ignore"] });
  return { file: join(folder, `${name}.html`), rows: JSON.parse(out.toString()) };
}

const table = (page) => page.locator("section[aria-labelledby=rows-title]");
const column = (page, i) => table(page).locator(`tbody td:nth-child(${i})`).allTextContents();
const labels = (page, chart) => page.locator(`section[aria-labelledby=title-${chart}] svg text[data-engine]`).allTextContents();
const sorted = (list) => [...list].sort();

async function checkReaders(name, page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => axe.run());
  const grave = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  check(`${name}: nothing serious for screen readers`, grave.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 120)}`), []);
}

async function checkTable(name, page, rows) {
  const status = table(page).locator("[role=status]");
  check(`${name}: a row for each time`, await status.textContent(), `${rows.length} of ${rows.length}`);
  await table(page).getByRole("button", { name: "time \u00f7 bound" }).click();
  const descending = (await column(page, 6)).map(Number);
  check(`${name}: sorted, the greatest first`, descending.every((value, i) => i === 0 || value <= descending[i - 1]));
  check(`${name}: that is the greatest of all`, Math.abs(descending[0] / Math.max(...rows.map(({ ratio }) => ratio)) - 1) < 0.01);
  await table(page).getByRole("button", { name: "time \u00f7 bound" }).click();
  const ascending = (await column(page, 6)).map(Number);
  check(`${name}: and the other way`, ascending.every((value, i) => i === 0 || value >= ascending[i - 1]));
  await table(page).getByRole("searchbox").fill("double-binary");
  const kept = rows.filter(({ engine, made_by: by }) => `${engine} ${by}`.includes("double-binary"));
  check(`${name}: filtered`, await status.textContent(), `${kept.length} of ${rows.length}`);
  check(`${name}: to the rows that were asked for`, (await column(page, 3)).every((text) => text === "double-binary-tree"));
  await table(page).getByRole("searchbox").fill("");
  await table(page).getByRole("combobox", { name: "Sizes" }).selectOption({ index: 1 });
  const least = Math.min(...rows.map(({ size_bytes: size }) => size));
  check(`${name}: one size of the table`, await status.textContent(), ((n) => `${n} of ${n}`)(rows.filter(({ size_bytes: size }) => size === least).length));
}

async function checkDownloads(name, page, engines) {
  const save = async (button) => {
    const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
    return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
  };
  const all = page.locator(".controls");
  const svg = await save(all.getByRole("button", { name: "SVG" }));
  check(`${name}: the name of the SVG`, svg.name, "allreduce-dgx-h100.svg");
  const faults = await page.evaluate((text) => {
    const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
    return { wrong: !!parsed.querySelector("parsererror"), titles: [...parsed.querySelectorAll("text[font-weight='700']")].map((t) => t.textContent), css: /var\(|class=/.test(text) };
  }, svg.bytes.toString());
  check(`${name}: the SVG is XML without styles of the page`, [faults.wrong, faults.css], [false, false]);
  for (const title of ["Time", "Bus bandwidth", "Time \u00f7 lower bound"]) check(`${name}: the SVG has ${title}`, faults.titles.includes(title));
  for (const engine of engines) check(`${name}: the SVG has ${engine}`, svg.bytes.toString().includes(`>${engine}</text>`));
  const png = await save(all.getByRole("button", { name: "PNG" }));
  check(`${name}: a PNG`, [png.bytes.subarray(1, 4).toString(), png.bytes.readUInt32BE(16) > 3000], ["PNG", true]);
  const one = await save(page.getByRole("button", { name: "Bus bandwidth as SVG" }));
  check(`${name}: one chart as SVG`, [one.name, one.bytes.toString().includes(">Time</text>")], ["allreduce-dgx-h100-busbw.svg", false]);
}

// Groups, the engine that stands out, and the size that is read off, over several sizes.
async function checkCharts(name, page, rows) {
  const fastest = new Map();
  for (const row of rows) if (!(fastest.get(row.size_bytes) <= row.time_us)) fastest.set(row.size_bytes, row.time_us);
  const before = await labels(page, "ratio");
  check(`${name}: few lines at first`, before.length >= 2 && before.length <= 9 && before.includes("auto"));
  check(`${name}: each of them the fastest somewhere`, before.every((engine) => rows.some((row) => row.engine === engine && row.time_us === fastest.get(row.size_bytes))));
  const trees = page.getByRole("button", { name: /^Rings and trees/ });
  await trees.click();
  const after = await labels(page, "ratio");
  check(`${name}: a group is switched on`, [after.includes("ring"), await trees.getAttribute("aria-pressed")], [true, "true"]);
  for (const chart of ["time", "busbw"]) check(`${name}: in all charts (${chart})`, sorted(await labels(page, chart)), sorted(after));
  await trees.click();
  check(`${name}: and off`, sorted(await labels(page, "ratio")), sorted(before));
  await page.getByRole("combobox", { name: "Stand out" }).selectOption("ring");
  check(`${name}: a chosen engine is shown`, (await labels(page, "time")).includes("ring"));
  await page.locator("h1").click();
  await page.keyboard.press("Escape");
  check(`${name}: Escape chooses none`, (await labels(page, "time")).includes("ring"), false);
  const readout = page.locator(".controls [role=status]");
  const last = await readout.textContent();
  await page.keyboard.press("ArrowLeft");
  check(`${name}: an arrow reads off another size`, (await readout.textContent()) !== last);
  await page.keyboard.press("a");
  check(`${name}: A shows every engine`, (await labels(page, "time")).length, new Set(rows.map(({ engine }) => engine)).size);
  const overlaps = await page.evaluate(() => {
    const boxes = [...document.querySelectorAll(".chart:first-child text[data-engine]")].map((text) => text.getBoundingClientRect()).sort((a, b) => a.top - b.top);
    return boxes.filter((box, i) => i > 0 && box.top < boxes[i - 1].top + 10).length;
  });
  check(`${name}: no label lies on another`, overlaps, 0);
  await checkReaders(`${name}, every engine`, page);
  await page.keyboard.press("a");
  const plot = await page.locator("section[aria-labelledby=title-time] svg").boundingBox();
  await page.mouse.move(plot.x + 100, plot.y + plot.height - 60);
  check(`${name}: what is pointed at is said`, await page.locator(".tooltip .first").count(), 1);
  check(`${name}: and the others are dimmed in all charts`, await page.locator("section[aria-labelledby=title-busbw] g[opacity='0.25']").count(), before.length - 1);
  await page.mouse.move(2, 2);
}

async function checkPage(browser, name, { file, rows }) {
  const { page, problems } = await open(browser, file);
  const several = new Set(rows.map(({ size_bytes: size }) => size)).size > 1;
  check(`${name}: the heading`, await page.locator("h1").textContent(), "allreduce on dgx-h100");
  if (several) await checkCharts(name, page, rows);
  else check(`${name}: a row for each engine`, sorted(await labels(page, "time")), sorted(rows.map(({ engine }) => engine)));
  await checkDownloads(name, page, ["auto", ...(several ? [] : ["ring"])]);
  await checkReaders(`${name}, light`, page);
  await page.locator("h1").click();
  await page.keyboard.press("t");
  check(`${name}: T changes the theme`, await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await checkReaders(`${name}, dark`, page);
  await checkTable(name, page, rows);
  check(`${name}: no problem on the console`, problems, []);
  await page.close();
  for (const [width, height] of [[1280, 800], [390, 844]]) {
    const narrow = await open(browser, file, { width, height });
    check(`${name}: nothing is cut at ${width} pixels`, await layoutFaults(narrow.page), []);
    await narrow.page.close();
  }
}

const browser = await launch();
try {
  const flags = ["dgx-h100", "-c", "allreduce"];
  await checkPage(browser, "sizes", compare("sizes", ...flags, "--sizes", "1KiB:64MiB:x256"));
  await checkPage(browser, "one size", compare("one", ...flags, "--sizes", "1MiB"));
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
process.exit(failed > 0 ? 1 : 0);
