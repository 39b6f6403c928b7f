// The pages of `xccl-synth compare --html` in a browser: node compare_test.mjs TOOL. Compares all engines on 8 ranks, over
// sizes and at one size, then with measured times, on several machines and on failed ones, and tries what a reader does. Prints a line for each check; exits with 1 where one fails.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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
  const shapes = await page.locator("section[aria-labelledby=title-time] svg").evaluate((svg) => [...svg.querySelectorAll("g > text[data-engine]")].map((text) => text.parentElement.querySelector("path[data-mark]")?.dataset.mark ?? "none"));
  check(`${name}: each has a mark of its own, auto none`, [new Set(shapes).size, shapes.filter((shape) => shape === "none").length], [before.length, 1]);
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

// One size: bars that begin at 0, with an axis.
async function checkBars(name, page, rows) {
  check(`${name}: a row for each engine`, sorted(await labels(page, "time")), sorted(rows.map(({ engine }) => engine)));
  for (const chart of ["time", "busbw", "ratio"]) {
    const svg = page.locator(`section[aria-labelledby=title-${chart}] svg`);
    const bars = await svg.locator("rect[data-value]").evaluateAll((all) => all.map((bar) => [Number(bar.getAttribute("width")), Number(bar.dataset.value)]));
    const [width, value] = bars[0];
    check(`${name}: bars of ${chart} are as long as their values`, bars.length === rows.length && bars.every(([w, v]) => Math.abs(w / v / (width / value) - 1) < 0.02));
    const ticks = await svg.locator("[data-tick=x]").allTextContents();
    check(`${name}: the axis of ${chart} begins at 0`, [ticks[0], ticks.length >= 3], ["0", true]);
  }
}

async function checkPage(browser, name, { file, rows }) {
  const { page, problems } = await open(browser, file);
  const several = new Set(rows.map(({ size_bytes: size }) => size)).size > 1;
  check(`${name}: the heading`, await page.locator("h1").textContent(), "allreduce on dgx-h100");
  if (several) await checkTradeOff(name, page, rows);
  if (several) await checkCharts(name, page, rows);
  else await checkBars(name, page, rows);
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

// The front of a trade-off, computed from the rows that the command printed.
function frontOf(rows, cost, size) {
  const some = rows.filter((row) => row.size_bytes === size && row.engine !== "auto" && row[cost] !== null).sort((a, b) => a[cost] - b[cost] || a.time_us - b.time_us);
  let least = Infinity;
  return some.filter(({ time_us: us }) => us < least && ((least = us), true)).map((row) => row[cost]);
}

async function checkTradeOff(name, page, rows) {
  const panel = page.locator("section[aria-labelledby=title-tradeoff]");
  const size = Math.max(...rows.map(({ size_bytes: bytes }) => bytes));
  const said = async () => [...(await panel.locator("[role=status]").textContent()).matchAll(/ ([\d,]+) and /g)].map(([, count]) => Number(count.replaceAll(",", "")));
  check(`${name}: the front of time and messages`, await said(), frontOf(rows, "messages", size));
  check(`${name}: it is marked`, await panel.locator("svg text[data-engine]").count(), frontOf(rows, "messages", size).length);
  await panel.getByRole("button", { name: "threadblocks" }).click();
  check(`${name}: the front of time and threadblocks`, await said(), frontOf(rows, "threadblocks", size));
  await page.locator("h1").click();
  await page.keyboard.press("m");
  check(`${name}: M goes back to messages`, await said(), frontOf(rows, "messages", size));
  await page.keyboard.press("ArrowLeft");
  check(`${name}: it is of the size that is read off`, (await panel.locator("h2").textContent()).startsWith("Time against messages at "), true);
  const smaller = Math.max(...rows.map(({ size_bytes: bytes }) => bytes).filter((bytes) => bytes < size));
  check(`${name}: and follows it`, await said(), frontOf(rows, "messages", smaller));
  const [download] = await Promise.all([page.waitForEvent("download"), panel.getByRole("button", { name: "Trade-off as SVG" }).click()]);
  check(`${name}: it is saved`, [download.suggestedFilename(), /var\(|class=/.test(readFileSync(await download.path()).toString())], ["allreduce-dgx-h100-messages.svg", false]);
}

// A table of nccl-tests on 8 ranks, in microseconds by size.
function measured(file, times) {
  const devices = Array.from({ length: 8 }, (_, r) => `#  Rank  ${r} Group  0 Pid   1 on h0 device  ${r} [0000:04:00] NVIDIA H100\n`).join("");
  const lines = times.map(([size, us]) => `  ${size}  ${size / 4}  float  sum  -1  ${us}  0.1  0.1  0  ${us}  0.1  0.1  0\n`).join("");
  writeFileSync(join(folder, file), `# Collective test starting: all_reduce_perf\n${devices}# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n${lines}`);
  return file;
}

async function checkLayout(name, file) {
  for (const [width, height] of [[1280, 800], [390, 844]]) {
    const narrow = await open(browser, file, { width, height });
    check(`${name}: nothing is cut at ${width} pixels`, await layoutFaults(narrow.page), []);
    await narrow.page.close();
  }
}

async function checkThemes(name, page) {
  await checkReaders(`${name}, light`, page);
  await page.locator("h1").click();
  await page.keyboard.press("t");
  await checkReaders(`${name}, dark`, page);
}

async function checkMeasured(browser) {
  const name = "measured", long = "a-long-name-of-a-file-that-nccl-tests-wrote.txt";
  const { file, rows } = compare(name, "dgx-h100", "-c", "allreduce", "-s", "1KiB,64KiB,4MiB", "--engines", "auto,ring,tree", "--with", measured(long, [[1024, 1], [4 << 20, 9000]]));
  const { page, problems } = await open(browser, file);
  check(`${name}: a dashed line in each chart`, await page.locator(".charts path[stroke-dasharray='6 5']").count(), 3);
  check(`${name}: its label`, (await page.locator(`section[aria-labelledby=title-time] text[data-engine='measured: ${long}']`).textContent()).startsWith("measured: a-"), true);
  check(`${name}: the table says so`, (await column(page, 3)).filter((text) => text === "nccl-tests, measured").length, rows.filter((row) => row.measured).length);
  check(`${name}: a size that was not measured stays empty`, (await page.locator("table.front tr", { hasText: long }).locator("td").allTextContents())[1], "\u2013");
  check(`${name}: the head says what was measured`, (await page.locator("header.top").textContent()).includes("all_reduce_perf of 8 ranks on 1 host, out of place; not simulated"));
  await checkThemes(name, page);
  check(`${name}: no problem on the console`, problems, []);
  await page.close();
  await checkLayout(name, file);
}

async function checkMachines(browser) {
  const name = "machines", topologies = ["dgx-a100", "dgx-h100", "ring:4"];
  const { file, rows } = compare(name, ...topologies, "-c", "allreduce", "-s", "1KiB,1MiB,64MiB", "--engines", "ring");
  const { page, problems } = await open(browser, file);
  check(`${name}: the heading`, await page.locator("h1").textContent(), "allreduce on 3 machines");
  const lines = [...topologies, ...topologies.map((topology) => `${topology}: ring`)];
  check(`${name}: a line for each plan of a machine`, sorted(await labels(page, "busbw")), sorted(lines));
  check(`${name}: a row for each time`, await table(page).locator("[role=status]").textContent(), `${rows.length} of ${rows.length}`);
  check(`${name}: each is drawn`, await page.locator("svg.machine").count(), 3);
  check(`${name}: and has a head`, await page.locator("main h2", { hasText: /^ring:4$/ }).count(), 1);
  const group = page.getByRole("button", { name: /^Rings and trees/ });
  await group.click();
  check(`${name}: auto alone`, sorted(await labels(page, "time")), sorted(topologies));
  await checkThemes(name, page);
  check(`${name}: no problem on the console`, problems, []);
  await page.close();
  await checkLayout(name, file);
}

async function checkFailures(browser) {
  const name = "failures";
  const { file, rows } = compare(name, "torus:3x3", "-c", "allgather", "-s", "64KiB,1MiB", "--engines", "auto,ring", "--failures", "6");
  const { page, problems } = await open(browser, file);
  const chart = page.locator("section[aria-labelledby=title-failures]");
  const bars = async () => (await chart.locator("rect").evaluateAll((all) => all.map((bar) => Number(bar.getAttribute("width")))));
  const failed = [...new Set(rows[0].failed)];
  check(`${name}: a row for each failure`, sorted(await chart.locator("text[data-failure]").evaluateAll((all) => all.map((text) => text.getAttribute("data-failure")))), sorted(failed));
  check(`${name}: the costliest first`, (await bars()).every((bar, i, all) => i === 0 || bar <= all[i - 1]));
  check(`${name}: no failure twice`, rows[0].failed.length, failed.length);
  const largest = Math.max(...rows.map(({ size_bytes: bytes }) => bytes));
  const rowOf = (engine) => rows.find((each) => each.engine === engine && each.size_bytes === largest);
  const said = () => chart.locator("[role=status]").textContent();
  const overBound = (engine) => `${rowOf(engine).worst_ratio.toFixed(2)}\u00d7 the bound`;
  check(`${name}: what it costs auto`, (await said()).includes(overBound("auto")));
  // The table has the means that the command prints.
  const table = page.locator("section[aria-labelledby=engines-title] tbody tr");
  for (const cells of await table.evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)))) {
    const row = rowOf(cells[0]);
    check(`${name}: mean time over the bound of ${cells[0]}`, [cells[3], cells[4]], [row.ratio.toFixed(2), row.worst_ratio.toFixed(2)]);
    check(`${name}: mean time of ${cells[0]}`, Math.abs(parseFloat(cells[2]) * (cells[2].endsWith("ms") ? 1000 : 1) / row.time_us - 1) < 0.001);
  }
  await page.getByRole("combobox", { name: "Engine" }).selectOption("ring");
  check(`${name}: what it costs ring`, (await said()).includes(overBound("ring")));
  await page.getByRole("combobox", { name: "Time over" }).selectOption("own");
  check(`${name}: over its own time`, (await said()).includes(`${(Math.max(...rowOf("ring").draw_us) / rowOf("ring").whole_us).toFixed(2)}\u00d7`));
  await page.locator("h1").click();
  await page.keyboard.press("ArrowLeft");
  check(`${name}: a key chooses the size`, (await chart.locator("h2").textContent()).endsWith("\u00a0KiB"));
  const engines = await page.getByRole("combobox", { name: "Engine" }).locator("option").count();
  for (let i = 0; i < engines; i++) await page.keyboard.press("n");
  check(`${name}: N goes around the engines`, (await chart.locator("h2").textContent()).startsWith("What each failure costs ring at "));
  await page.keyboard.press("p");
  check(`${name}: P goes back`, (await chart.locator("h2").textContent()).startsWith("What each failure costs ring at "), false);
  check(`${name}: a row of the table for each time`, await page.locator("section.rows [role=status]").textContent(), ((n) => `${n} of ${n}`)(rows.length * failed.length));
  const [download] = await Promise.all([page.waitForEvent("download"), chart.getByRole("button", { name: "SVG" }).click()]);
  check(`${name}: the chart is saved`, [download.suggestedFilename(), /var\(|class=/.test(readFileSync(await download.path()).toString())], ["allgather-torus-3x3-failures.svg", false]);
  await checkThemes(name, page);
  check(`${name}: no problem on the console`, problems, []);
  await page.close();
  await checkLayout(name, file);
}

const browser = await launch();
try {
  const flags = ["dgx-h100", "-c", "allreduce"];
  await checkPage(browser, "sizes", compare("sizes", ...flags, "--sizes", "1KiB:64MiB:x256"));
  await checkPage(browser, "one size", compare("one", ...flags, "--sizes", "1MiB"));
  await checkMeasured(browser);
  await checkMachines(browser);
  await checkFailures(browser);
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
process.exit(failed > 0 ? 1 : 0);
