import { launch, open, layoutFaults } from "/tmp/w/page/view/test/browser.mjs";
const b = await launch();
for (const f of process.argv.slice(2)) for (const [w, h, theme] of [[1280, 800, "light"], [390, 844, "dark"]]) {
  const n = f.replace(".html", "");
  try {
  const { page, problems, ready_ms } = await open(b, f, { width: w, height: h, theme });
  const r = page.locator("input[aria-label=Time]"); const max = Number(await r.getAttribute("max"));
  await r.evaluate((e) => { e.value = String(Number(e.max) * 0.45); e.dispatchEvent(new Event("input", { bubbles: true })); });
  await page.waitForTimeout(80);
  const faults = await layoutFaults(page);
  if (problems.length || faults.length) console.log(n, w, problems, faults);
  await page.screenshot({ path: `${n}-${w}.png` });
  await page.close(); } catch (e) { console.log(n, String(e).slice(0, 200)); }
}
await b.close();
