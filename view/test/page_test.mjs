// The page of `xccl-synth view` in a browser: node page_test.mjs TOOL. Makes plans of 8, 72 and 1,024 ranks and a book,
// and tries what a reader does. Prints a line for each check; exits with 1 where one fails.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { launch, layoutFaults, open } from "./browser.mjs";

const tool = resolve(process.argv[2]);
const folder = mkdtempSync(join(tmpdir(), "xccl-view-"));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const run = (...args) => execFileSync(tool, args, { cwd: folder, stdio: ["ignore", "pipe", "inherit"] }).toString();

let failed = 0;
function check(name, seen, expected = true) {
  const good = JSON.stringify(seen) === JSON.stringify(expected);
  if (!good) failed++;
  console.log(good ? `ok      ${name}` : `FAILED  ${name}: ${JSON.stringify(seen)}; expected ${JSON.stringify(expected)}`);
}

function plan(name, ...args) {
  run("plan", ...args, "-o", `${name}.plan.json`);
  run("view", `${name}.plan.json`, "-o", `${name}.html`);
  return join(folder, `${name}.html`);
}

// The state that a reader sees: the time, what it says, and whether it plays.
const readout = (page) => page.locator(".readout b").textContent();
const time = (page) => page.locator(".transport").getAttribute("data-time").then(Number);
// Does the time become later (1) or earlier (-1) than it was, within a while?
const moves = (page, before, direction) =>
  page.waitForFunction(([was, way]) => (Number(document.querySelector(".transport").dataset.time) - was) * way > 0, [before, direction], { timeout: 10_000 })
    .then(() => true, () => false);

async function checkPlaying(name, page) {
  await page.locator("h1").click(); // a focused button would take Space for itself
  await page.keyboard.press("Home");
  await page.waitForSelector(".transport[data-time='0']");
  await page.keyboard.press("Space");
  check(`${name}: Space plays`, await moves(page, 0, 1));
  await page.keyboard.press("Space");
  await page.getByRole("button", { name: "Play", exact: true }).waitFor();
  const stopped = await time(page);
  await page.waitForTimeout(150);
  check(`${name}: Space pauses`, await time(page), stopped);
  await page.keyboard.press("ArrowRight");
  check(`${name}: an arrow steps on`, await moves(page, stopped, 1));
  const stepped = await time(page);
  await page.keyboard.press("ArrowLeft");
  check(`${name}: and back`, await moves(page, stepped, -1));
  await page.getByRole("button", { name: "Play", exact: true }).click();
  await page.getByRole("button", { name: "Pause", exact: true }).click();
}

async function checkScrubbing(name, page) {
  const range = page.locator("input[aria-label=Time]");
  const end = Number(await range.getAttribute("max"));
  const before = await time(page), said = await readout(page);
  const box = await range.boundingBox();
  await page.mouse.click(box.x + box.width * 0.75, box.y + box.height / 2);
  await moves(page, before, 1);
  const at = await time(page);
  check(`${name}: the slider scrubs`, Math.abs(at / end - 0.75) < 0.03);
  check(`${name}: the readout follows`, (await readout(page)) !== said);
  await page.keyboard.press("End");
  await moves(page, end - 1, 1);
  check(`${name}: at the end all is there`, /^0 links busy, ([\d,]+) of \1 ranks complete$/.test(await page.locator(".readout span").textContent()));
}

// The picture on a canvas, to see whether the canvas was redrawn.
const picture = (page, label) => page.locator(`canvas[aria-label^="${label}"]`).evaluate((canvas) => canvas.toDataURL());

async function checkFiltering(name, page) {
  const rows = page.locator(".timeline p[role=status]");
  const all = await rows.textContent();
  await page.getByRole("searchbox", { name: "Filter rows" }).fill("gpu 1 ");
  const some = await rows.textContent();
  check(`${name}: the filter leaves fewer rows`, all !== some && !some.startsWith("0"));
  await page.getByRole("searchbox", { name: "Filter rows" }).fill("");
  check(`${name}: and all again`, await rows.textContent(), all);
  await page.getByRole("tab", { name: "Links" }).click();
  const counts = page.locator("#tab-body [role=status]");
  await page.getByRole("searchbox", { name: "Filter Links" }).fill("gpu 1 ");
  const [left, links] = (await counts.textContent()).replaceAll(",", "").match(/\d+/g).map(Number);
  check(`${name}: the table of links is filtered`, left > 0 && left < links);
  check(`${name}: and has the rows that it counts`, await page.locator("#tab-body tbody tr").count(), Math.min(left, 100));
}

async function checkFollowing(name, page) {
  await page.keyboard.press("Escape");
  await page.locator("input[aria-label=Time]").fill(String(Math.round(Number(await page.locator("input[aria-label=Time]").getAttribute("max")) / 2)));
  const follow = page.getByRole("combobox", { name: "Follow" });
  for (const what of ["rank", "chunk", "critical", "link"]) {
    await follow.selectOption("none");
    const before = await picture(page, "Drawing");
    await follow.selectOption(what);
    check(`${name}: the drawing shows a followed ${what}`, (await picture(page, "Drawing")) !== before);
  }
  await page.locator("h1").click();
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.querySelector(".follow select").value === "none");
}

async function checkTabs(name, page) {
  const tabs = page.getByRole("tab");
  for (let i = 0; i < (await tabs.count()); i++) {
    await tabs.nth(i).click();
    check(`${name}: tab ${await tabs.nth(i).textContent()} shows something`, (await page.locator("#tab-body").textContent()).length > 20);
  }
}

async function checkReaders(name, page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => axe.run());
  const grave = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  check(`${name}: nothing serious for screen readers`, grave.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 120)}`), []);
}

async function checkPage(browser, name, file, mostMs) {
  const { page, problems, ready_ms } = await open(browser, file);
  check(`${name}: drawn in ${ready_ms} ms, under ${mostMs}`, ready_ms < mostMs);
  check(`${name}: under 8 MB`, statSync(file).size < 8e6);
  await checkPlaying(name, page);
  await checkScrubbing(name, page);
  await checkFollowing(name, page);
  await checkTabs(name, page);
  await checkFiltering(name, page);
  await page.getByRole("tab", { name: "Chunks" }).click();
  await checkReaders(`${name}, light`, page);
  await page.keyboard.press("t");
  await page.waitForSelector("html[data-theme=dark]");
  await checkReaders(`${name}, dark`, page);
  await page.keyboard.press("?");
  await page.getByRole("heading", { name: "Keys" }).waitFor();
  await checkReaders(`${name}, keys`, page);
  await page.keyboard.press("Escape");
  check(`${name}: no problem on the console`, problems, []);
  await page.close();
  for (const [width, height] of [[1280, 800], [390, 844]]) {
    const narrow = await open(browser, file, { width, height });
    check(`${name}: nothing is cut at ${width} pixels`, await layoutFaults(narrow.page), []);
    await narrow.page.close();
  }
}

// The page states the numbers that the command line prints.
async function checkNumbers(browser, name, file) {
  const [row] = JSON.parse(run("simulate", `${name}.plan.json`, "--json"));
  const { page } = await open(browser, file);
  const seen = await page.evaluate(() => JSON.parse(document.getElementById("plan-0").textContent).facts);
  check(`${name}: the time of simulate`, seen.time_ps, Math.round(row.time_us * 1e6));
  check(`${name}: the bound of simulate`, seen.bound_ps, Math.round(row.bound_us * 1e6));
  const [program] = JSON.parse(run("simulate", `${name}.plan.json`, "--json", "--level", "program"));
  check(`${name}: the time of the program`, seen.program_time_ps, Math.round(program.time_us * 1e6));
  check(`${name}: the page plays the program`, Number(await page.locator("input[aria-label=Time]").getAttribute("max")), seen.program_time_ps);
  check(`${name}: and shows its path`, await page.getByRole("button", { name: "Show path" }).getAttribute("title"), "Show the program's critical path on the machine and the timeline (C)");
  await page.close();
}

function book() {
  mkdirSync(join(folder, "book"));
  const names = ["small", "large"];
  run("plan", "dgx-a100", "-c", "allreduce", "-s", "64KiB", "-o", "book/small.plan.json");
  copyFileSync(join(folder, "h100.plan.json"), join(folder, "book/large.plan.json"));
  const plans = names.map((name, i) => ({ file: `${name}.plan.json`, collective: "allreduce", ranks: 8, min_bytes: i * 1048577, ...(i === 0 ? { max_bytes: 1048576 } : {}), types: "any", in_place: "both" }));
  writeFileSync(join(folder, "book/index.json"), JSON.stringify({ format: 1, plans }));
  run("view", "book", "-o", "book.html");
  return join(folder, "book.html");
}

// Where threadblocks decide, the page does not advise wider links.
async function checkAdvice(browser, file) {
  const { page } = await open(browser, file);
  const text = await page.locator(".why-body").textContent();
  check("advice: threadblocks decide", /Threadblocks decide: the last arrival of the program waits \d+\u00a0% of the time/.test(text));
  check("advice: not only wider links", text.includes("only wider links"), false);
  check("advice: the bound is named alike", (await page.locator(".numbers").textContent()).includes("by latency and bandwidth together"), text.includes("Latency and bandwidth together set"));
  await page.close();
}

async function checkBook(browser, file) {
  const { page, problems } = await open(browser, file);
  check("book: its first plan is shown", await page.locator("h1").textContent(), "allreduce on dgx-a100");
  await page.getByRole("button", { name: "large.plan.json" }).click();
  check("book: another is picked", await page.locator("h1").textContent(), "allreduce on dgx-h100");
  await checkPlaying("book", page);
  await checkReaders("book", page);
  check("book: no problem on the console", problems, []);
  await page.close();
}

// A name in a plan cannot become a part of the page.
async function checkNames(browser) {
  const xml = `<topology name="a&lt;/script>&lt;b>"><gpu id="0"/><gpu id="1"/><link from="0" to="1" bandwidth="1GB/s" latency="1us"/></topology>`;
  writeFileSync(join(folder, "odd.xml"), xml);
  const file = plan("odd", "odd.xml", "-c", "broadcast", "-s", "1MiB");
  const { page, problems } = await open(browser, file);
  check("a name with tags is text", await page.locator("h1").textContent(), "broadcast on a</script><b>");
  check("a name with tags: no problem on the console", problems, []);
  await page.close();
}

// Plans that move nothing: one member, all data where it is wanted.
async function checkEmpty(browser) {
  writeFileSync(join(folder, "counts.csv"), "5,0\n0,3\n");
  const pages = [
    ["allgather on ring:2", plan("alone", "ring:2", "-c", "allgather", "--ranks", "0", "-s", "1MiB")],
    ["alltoallv on ring:2", plan("still", "ring:2", "-c", "alltoallv", "--counts", "counts.csv", "-s", "1MiB")],
  ];
  for (const [title, file] of pages) {
    const { page, problems } = await open(browser, file);
    check(`nothing moves: ${title}`, await page.locator("h1").textContent(), title);
    await page.keyboard.press("End");
    await page.keyboard.press("Space");
    check(`nothing moves: ${title}: no problem on the console`, problems, []);
    check(`nothing moves: ${title}: the layout`, await layoutFaults(page), []);
    await page.close();
  }
}

const browser = await launch();
try {
  const h100 = plan("h100", "dgx-h100", "-c", "allreduce", "-s", "64MiB");
  await checkPage(browser, "8 ranks", h100, 2000);
  await checkNumbers(browser, "h100", h100);
  const nvl72 = plan("nvl72", "gb200-nvl72", "-c", "allreduce", "-s", "64MiB");
  await checkPage(browser, "72 ranks", nvl72, 2000);
  const torus = plan("torus", "torus:32x32", "-c", "allgather", "-s", "64MiB");
  await checkPage(browser, "1,024 ranks", torus, 2000);
  await checkAdvice(browser, plan("rail", "rail-8", "-c", "allgather", "-s", "64MiB"));
  await checkBook(browser, book());
  await checkNames(browser);
  await checkEmpty(browser);
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
process.exit(failed > 0 ? 1 : 0);
