// Bundles the sources of each page, src/pages/NAME.tsx and what it imports, into one committed HTML file,
// dist/NAME.html. xccl-synth embeds the pages of dist/ and puts its data where they say @XCCL_DATA@.
//   node build.mjs           writes dist/
//   node build.mjs --check   fails where dist/ is not what the sources give
import { build } from "esbuild";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const limit = 400_000; // bytes of one page without its data

// Every file pages/NAME.ts or pages/NAME.tsx is a page.
const pages = readdirSync(join(here, "src/pages"))
  .filter((file) => /\.tsx?$/.test(file))
  .sort();

async function bundle(file) {
  const result = await build({
    entryPoints: [join(here, "src/pages", file)],
    absWorkingDir: here,
    bundle: true,
    minify: true,
    write: false,
    outdir: "out",
    format: "iife",
    target: "es2022",
    charset: "ascii",
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
  });
  const text = (suffix) => result.outputFiles.filter((f) => f.path.endsWith(suffix)).map((f) => f.text).join("");
  const script = text(".js").replaceAll("</script", "<\\/script").trim();
  const style = text(".css").trim();
  // The policy lets nothing be fetched: the page is this file alone.
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:">
<meta name="color-scheme" content="light dark">
<title>XCCL</title>
<style>${style}</style>
</head>
<body>
<div id="page"><noscript>This page needs JavaScript.</noscript></div>
<script type="application/json" id="data">@XCCL_DATA@</script>
<script>${script}</script>
</body>
</html>
`;
  if (/[^\x00-\x7f]/.test(html)) throw new Error(`${file}: a character that is not ASCII; expected ASCII alone`);
  if (html.split("@XCCL_DATA@").length !== 2) throw new Error(`${file}: @XCCL_DATA@ occurs twice; expected once`);
  if (html.length > limit) throw new Error(`${file}: ${html.length} bytes; expected at most ${limit}`);
  return html;
}

let wrong = 0;
mkdirSync(join(here, "dist"), { recursive: true });
for (const file of pages) {
  const name = file.replace(/\.tsx?$/, ".html");
  const path = join(here, "dist", name);
  const html = await bundle(file);
  const before = existsSync(path) ? readFileSync(path, "utf8") : "";
  if (process.argv.includes("--check")) {
    if (before !== html) {
      console.error(`view/dist/${name}: not what view/src gives; run: npm run build, in view/`);
      wrong = 1;
    }
  } else if (before !== html) {
    writeFileSync(path, html);
  }
  console.log(`view/dist/${name}: ${html.length} bytes`);
}
process.exit(wrong);
