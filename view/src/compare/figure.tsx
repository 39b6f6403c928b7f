// The charts as one picture for a paper: on white, the same for every window and theme.
import { render } from "preact";
import { savePng, saveSvg } from "../shared/download";
import { LineChart, RowChart, rowsHeight, type Look } from "./chart";
import { chosen, data, shown, sizes, timesAreOf, title, type Measure } from "./state";

const print: Look = { theme: "light", ink: "#16191c", soft: "#565d64", line: "#e2e5e8", paper: "#ffffff" };
const wide = 440, head = 84, margin = 16;

function Figure({ measures }: { measures: Measure[] }) {
  const Chart = sizes.length > 1 ? LineChart : RowChart;
  const height = sizes.length > 1 ? Math.max(340, shown.value.length * 14 + 60) : rowsHeight(shown.value);
  const width = 2 * margin + measures.length * wide, high = head + height + 36;
  return (
    <svg xmlns="http://www.w3.org/2000/svg" width={width} height={high} viewBox={`0 0 ${width} ${high}`} role="img" font-family="Helvetica, Arial, sans-serif">
      <title>{title}</title>
      <rect width={width} height={high} fill={print.paper} />
      <text x={margin} y="28" font-size="17" font-weight="700" fill={print.ink}>{title}</text>
      <text x={margin} y="46" font-size="11" fill={print.soft}>{`${data.ranks} ranks, ${data.model} model`}</text>
      {measures.map((measure, i) => (
        <g key={measure.name} transform={`translate(${margin + i * wide} ${head})`}>
          <text x="4" y="-8" font-size="13" font-weight="700" fill={print.ink}>{measure.title}</text>
          <Chart measure={measure} engines={shown.value} sizes={sizes} look={print} width={wide - 12} height={height} chosen={chosen.value} />
        </g>
      ))}
      <text x={margin} y={high - 22} font-size="10" fill={print.soft}>{`Times of ${timesAreOf}`.slice(0, measures.length * 80)}</text>
      <text x={margin} y={high - 8} font-size="10" fill={print.soft}>{`xccl-synth ${data.version}: ${data.command}`.slice(0, measures.length * 80)}</text>
    </svg>
  );
}

function textOf(measures: Measure[]): string {
  const box = document.createElement("div");
  render(<Figure measures={measures} />, box);
  return new XMLSerializer().serializeToString(box.firstElementChild!);
}

export function saveFigure(measures: Measure[], kind: "svg" | "png") {
  const what = measures.length === 1 ? `-${measures[0]!.name}` : "";
  const name = `${data.collective}-${data.topology.name}${what}`.replaceAll(/[^\w.-]+/g, "-");
  if (kind === "svg") saveSvg(textOf(measures), `${name}.svg`);
  else void savePng(textOf(measures), `${name}.png`);
}
