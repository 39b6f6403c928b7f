// No text of a page is cut or lies on another one: node labels_test.mjs TOOL [MACHINE...]. Makes the pages of view, compare
// and compare --failures of each machine and opens them in a browser, in three widths and both themes. Prints a line for
// each page; exits with 1 where a text is cut.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { labelFaults, launch, open } from "./browser.mjs";

const [tool, ...given] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "xccl-labels-"));
const run = (...args) => execFileSync(resolve(tool), args, { cwd: folder, stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, HOME: folder } });

// Two racks of hosts with long names.
const host = (name) => `<host name="${name}"><gpu id="0"/><gpu id="1"/><nic id="mellanox-left"/>
  <link from="gpu:0" to="gpu:1" bandwidth="200GB/s" latency="500ns"/>
  <link from="gpu:0" to="mellanox-left" bandwidth="50GB/s" latency="500ns"/><link from="gpu:1" to="mellanox-left" bandwidth="50GB/s" latency="500ns"/></host>`;
const names = ["compute-rack-one-host-a", "compute-rack-one-host-b", "compute-rack-two-host-c"];
const leaf = "leaf-switch-of-rack";
writeFileSync(join(folder, "racks.xml"), `<topology name="a-cluster-with-long-names">${names.map(host).join("")}<switch id="${leaf}"/>
  ${names.map((name) => `<link from="${name}/mellanox-left" to="${leaf}" bandwidth="50GB/s" latency="1us"/>`).join("\n  ")}</topology>`);

const machines = given.length > 0 ? given.map((name) => (existsSync(name) ? resolve(name) : name)) : ["dgx-h100", "torus:3x3", "racks.xml"];
const pages = {
  view: (machine, file) => {
    run("plan", machine, "-c", "allreduce", "-s", "1MiB", "-o", "a.plan.json");
    run("view", "a.plan.json", "-o", file);
  },
  compare: (machine, file) => run("compare", machine, "-c", "allgather", "--sizes", "4KiB,64KiB,1MiB", "--html", file),
  "compare of one size": (machine, file) => run("compare", machine, "-c", "allreduce", "-s", "64KiB", "--engines", "auto,ring,tree,forest,greedy", "--html", file),
  failures: (machine, file) => run("compare", machine, "-c", "allreduce", "-s", "1MiB", "--engines", "auto,ring", "--failures", "4", "--html", file),
};

let failed = 0;
async function look(browser, name, file) {
  const faults = [];
  const { page, problems } = await open(browser, file, { width: 1440, height: 900 });
  for (const theme of ["light", "dark"]) {
    if (theme === "dark") {
      await page.locator("h1").click();
      await page.keyboard.press("t");
      await page.waitForSelector("html[data-theme=dark]");
    }
    for (const width of [390, 800, 1440]) {
      await page.setViewportSize({ width, height: 900 });
      // Drawings follow the width of their boxes a few frames later.
      await page.evaluate(async () => {
        for (let i = 0; i < 4; i++) await new Promise((done) => requestAnimationFrame(done));
      });
      for (const fault of await labelFaults(page)) faults.push(`${width} pixels, ${theme}: ${fault}`);
      if (process.env.XCCL_PICTURES) await page.screenshot({ path: join(process.env.XCCL_PICTURES, `${name.replaceAll(/[^\w.-]+/g, "-")}-${width}-${theme}.png`), fullPage: true });
    }
  }
  faults.push(...problems);
  await page.close();
  if (faults.length > 0) failed++;
  console.log(`${faults.length === 0 ? "ok     " : "FAILED "} ${name}`);
  for (const fault of faults) console.log(`          ${fault}`);
}

const browser = await launch();
try {
  for (const machine of machines)
    for (const [kind, make] of Object.entries(pages)) {
      const file = join(folder, "page.html");
      try {
        make(machine, file);
      } catch (error) {
        // Where every cable is needed, none can fail.
        const skips = kind === "failures";
        if (!skips) failed++;
        console.log(`${skips ? "skipped" : "FAILED "} ${kind} of ${machine}: ${error.stderr?.toString().trim().split("\n")[0] ?? error}`);
        continue;
      }
      await look(browser, `${kind} of ${machine}`, file);
    }
  const file = join(folder, "machines.html");
  run("compare", ...(given.length > 0 ? machines.slice(0, 4) : ["dgx-a100", "dgx-h100", "ring:4"]), "-c", "allreduce", "--sizes", "1KiB,64KiB,1MiB", "--engines", "ring", "--html", file);
  await look(browser, "machines side by side", file);
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
process.exit(failed > 0 ? 1 : 0);
