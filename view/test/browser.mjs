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

// Texts that are cut, and texts that lie on other texts. What a region that scrolls hides is not cut.
export function labelFaults(page) {
  return page.evaluate(() => {
    const faults = [];
    const short = (text) => `'${text.trim().replaceAll(/\s+/g, " ").slice(0, 50)}'`;
    const skipped = ".unseen, dialog:not([open]), .tooltip, noscript, script, style, option, title, details:not([open]) > :not(summary)";
    const within = (box, area) => ({ left: Math.max(box.left, area.left), right: Math.min(box.right, area.right), top: Math.max(box.top, area.top), bottom: Math.min(box.bottom, area.bottom) });
    const pen = document.createElement("canvas").getContext("2d");
    const texts = []; // what is seen of every line of every text
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const element = node.parentElement;
      if (!node.data.trim() || element.closest(skipped) || getComputedStyle(element).visibility === "hidden") continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      const svg = element.closest("svg");
      if (node.data.includes("\u2026")) faults.push(`${short(node.data)} is shortened`);
      for (const line of range.getClientRects()) {
        if (line.width < 1 || line.height < 1) continue;
        let box = { left: line.left, right: line.right, top: line.top, bottom: line.bottom };
        if (svg) {
          const area = svg.getBoundingClientRect();
          if (box.left < area.left - 1 || box.right > area.right + 1 || box.top < area.top - 2 || box.bottom > area.bottom + 2) faults.push(`${short(node.data)} sticks out of its drawing`);
        }
        for (let parent = svg ?? element; parent; parent = parent.parentElement) {
          const { overflowX, overflowY } = getComputedStyle(parent);
          if (overflowX === "visible" && overflowY === "visible") continue;
          const area = parent.getBoundingClientRect();
          const cut = (overflowX === "hidden" || overflowX === "clip") && (box.left < area.left - 1 || box.right > area.right + 1);
          if (cut && parent !== document.documentElement) faults.push(`${short(node.data)} is cut`);
          box = within(box, area);
        }
        // Letters fill the middle of a line's height.
        const trim = (box.bottom - box.top) * 0.2;
        if (box.right - box.left > 1 && box.bottom - box.top > 1)
          texts.push({ ...box, top: box.top + trim, bottom: box.bottom - trim, text: node.data, element, fixed: !!element.closest(".transport") });
      }
    }
    texts.sort((a, b) => a.top - b.top);
    for (let i = 0; i < texts.length; i++)
      for (let k = i + 1; k < texts.length && texts[k].top < texts[i].bottom; k++) {
        const a = texts[i], b = texts[k], both = within(a, b);
        if (a.fixed !== b.fixed || both.right - both.left < 1.5 || both.bottom - both.top < 1) continue;
        faults.push(`${short(a.text)} and ${short(b.text)} overlap`);
      }
    const widthOf = (text, element) => {
      pen.font = getComputedStyle(element).font;
      return pen.measureText(text).width;
    };
    for (const select of document.querySelectorAll("select")) {
      const text = select.selectedOptions[0]?.textContent ?? "", room = select.clientWidth - 26;
      if (select.clientWidth > 0 && widthOf(text, select) > room) faults.push(`${short(text)} is cut in its list`);
    }
    for (const input of document.querySelectorAll("input[placeholder]"))
      if (input.clientWidth > 0 && widthOf(input.placeholder, input) > input.clientWidth - 16) faults.push(`${short(input.placeholder)} is cut in its field`);
    for (const canvas of document.querySelectorAll("canvas[data-cut]")) faults.push(`${short(canvas.dataset.cut)} is cut on its canvas`);
    for (const chart of document.querySelectorAll(".chart svg"))
      for (const axis of ["x", "y"]) {
        const ticks = chart.querySelectorAll(`[data-tick=${axis}]`).length;
        if (ticks === 1 || ticks === 2) faults.push(`${chart.getAttribute("aria-label").slice(0, 40)}: ${ticks} ticks on ${axis}`);
      }
    return [...new Set(faults)];
  });
}
