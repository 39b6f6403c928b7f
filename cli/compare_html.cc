// The page of compare --html: Chart.js from Debian, embedded at build time, so that the file opens anywhere.
#include <fmt/core.h>

#include "base/strings.h"
#include "base/units.h"
#include "cli/chart_js.h"
#include "cli/output.h"
#include "cli/show.h"

namespace xccl {
namespace {

constexpr std::string_view kStyle =
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;color:#222;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}"
    "th,td{padding:.2rem .6rem;text-align:right;border-bottom:1px solid #ddd}"
    "th:nth-child(2),td:nth-child(2){text-align:left}tr.best td{font-weight:600}"
    ".note{color:#666}";

// Time over bound by size, one line per engine: 1 is the best that any plan could do.
constexpr std::string_view kScript = R"(
const engines = [...new Set(rows.map(r => r.engine))];
const colours = ['#2563eb','#dc2626','#16a34a','#9333ea','#ea580c','#0891b2','#854d0e','#db2777','#4b5563','#65a30d'];
const dashes = [[], [8, 4], [2, 3], [12, 3, 2, 3]];  // one a round through the colours
new Chart(document.getElementById('chart'), {
  type: 'line',
  data: { datasets: engines.map((engine, i) => ({
    label: engine, borderColor: colours[i % colours.length], backgroundColor: colours[i % colours.length], borderWidth: 2,
    borderDash: dashes[Math.floor(i / colours.length) % dashes.length],
    data: rows.filter(r => r.engine === engine).map(r => ({ x: r.size_bytes, y: r.ratio })) })) },
  options: { animation: false, scales: {
    x: { type: 'logarithmic', title: { display: true, text: 'size' },
         ticks: { callback: v => { const e = Math.log2(v);
           return e % 2 ? '' : ['B','KiB','MiB','GiB','TiB'].map((u, i) => (v / 1024 ** i) + u)[Math.floor(e / 10)]; } },
         afterBuildTicks: axis => { axis.ticks = [...new Set(rows.map(r => 2 ** Math.round(Math.log2(r.size_bytes))))]
           .map(value => ({ value })); } },
    y: { type: 'logarithmic', title: { display: true, text: 'time / bound' }, min: 1,
         ticks: { callback: v => [1, 2, 5].includes(v / 10 ** Math.floor(Math.log10(v) + 1e-9)) ? v : '' } } } }
});
)";

}  // namespace

std::string CompareHtml(const Comparison& comparison) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta "
      "charset=\"utf-8\"><title>{0}</title>\n<style>{1}</style>\n"
      "<script>{2}</script></head>\n<body><h1>{0}</h1>\n"
      "<p class=\"note\">Simulated time over the lower bound: 1 is the best that any plan could do.</p>\n"
      "<canvas id=\"chart\" height=\"120\"></canvas>\n<table>\n<tr><th>size</th><th>engine</th><th>time "
      "µs</th>"
      "<th>algbw GB/s</th><th>busbw GB/s</th><th>time / bound</th></tr>\n",
      EscapedXml(comparison.title), kStyle, kChartJs);
  int64_t last = -1;
  for (const TimedPlan& timed : comparison.times) {
    html += fmt::format("<tr{}><td>{}</td>", timed.size_bytes == last ? "" : " class=\"best\"",
                        SizeText(timed.size_bytes));
    for (const std::string& cell : TimedCells(timed)) html += "<td>" + EscapedXml(cell) + "</td>";
    html += "</tr>\n";
    last = timed.size_bytes;
  }
  html += "</table>\n";
  for (const std::string& reason : comparison.left_out)
    html += "<p class=\"note\">left out: " + EscapedXml(reason) + "</p>\n";
  html += "<script>const rows = " + ToJson(ToRows(comparison.times, comparison.on)) + ";" +
          std::string(kScript) + "</script></body></html>\n";
  return html;
}

}  // namespace xccl
