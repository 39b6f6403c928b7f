// Debian's Chromium, driven by playwright-core; pages are files, and nothing may use the network.
import { pathToFileURL } from "node:url";

const path = "/usr/bin/chromium";

export async function launch() {
  const { chromium } = await import("playwright-core");
  return chromium.launch({
    executablePath: path,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
}

// Opens a page and collects what goes wrong on it: messages on the console, errors, requests.
export async function open(browser, file, { width = 1280, height = 800, theme = "light" } = {}) {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: theme });
  const problems = [];
  page.on("console", (message) => problems.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (!/^(file|data|blob):/.test(request.url())) problems.push(`request: ${request.url()}`);
  });
  // Milliseconds of the page's main thread, which other work on this computer does not stretch.
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  await page.goto(pathToFileURL(file).href);
  await page.waitForSelector("html[data-ready]");
  // Two frames later everything has been drawn once.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const { metrics } = await session.send("Performance.getMetrics");
  const ready_ms = Math.round(1000 * metrics.find(({ name }) => name === "TaskDuration").value);
  return { page, problems, ready_ms };
}

// Elements that stick out of the window, and texts that their boxes cut.
export function layoutFaults(page) {
  return page.evaluate(() => {
    const faults = [];
    const wide = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth > wide) faults.push(`the page is ${document.documentElement.scrollWidth} pixels wide, the window ${wide}`);
    const scrolls = (element) => {
      for (let e = element; e; e = e.parentElement) if (/auto|scroll|hidden/.test(getComputedStyle(e).overflowX)) return true;
      return false;
    };
    for (const element of document.querySelectorAll("button, select, input, h1, h2, p, dd, dt, li, label, summary")) {
      const box = element.getBoundingClientRect();
      if (box.width === 0 || element.closest(".unseen, dialog:not([open]), .tooltip")) continue;
      const name = `${element.tagName.toLowerCase()} '${(element.textContent || element.getAttribute("aria-label") || "").trim().slice(0, 40)}'`;
      if ((box.right > wide + 0.5 || box.left < -0.5) && !scrolls(element)) faults.push(`${name} sticks out of the window`);
      if (element.tagName === "BUTTON" && element.scrollWidth > element.clientWidth + 1) faults.push(`${name} is cut`);
    }
    return faults;
  });
}
