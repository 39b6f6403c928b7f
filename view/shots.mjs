import { launch, open, layoutFaults } from "./test/browser.mjs";
const b = await launch();
for (const f of process.argv.slice(2)) for (const [w, h, theme] of [[1280, 800, "light"], [1280, 800, "dark"], [390, 844, "light"], [390, 844, "dark"]]) {
  const n = f.replace(".html", "");
  const { page, problems, ready_ms } = await open(b, f, { width: w, height: h, theme });
  await page.waitForTimeout(150);
  console.log(n, w, theme, ready_ms, problems, await layoutFaults(page));
  await page.screenshot({ path: `${n}-${w}-${theme}.png`, fullPage: true });
  await page.close();
}
await b.close();
