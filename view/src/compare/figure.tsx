// The charts as one picture for a paper: on white, the same for every window and theme.
import { render, type VNode } from "preact";
import * as format from "../shared/format";
import { savePng, saveSvg } from "../shared/download";
import { print } from "../shared/look";
import { LineChart, RowChart, rowsHeight } from "./chart";
import { chosen, data, machines, several, shown, sizes, timesAreOf, title, type Measure } from "./state";

const under = `${several ? machines.map(({ name, ranks }) => `${name} ${format.counted(ranks, "rank")}`).join(", ") : format.counted(machines[0]!.ranks, "rank")}, ${data.model} model`;
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
      <text x={margin} y="46" font-size="11" fill={print.soft}>{under}</text>
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

// A drawing of its own with its title.
function Alone({ heading, drawing, width, height }: { heading: string; drawing: VNode; width: number; height: number }) {
  const high = head + height + 36;
  return (
    <svg xmlns="http://www.w3.org/2000/svg" width={width + 2 * margin} height={high} viewBox={`0 0 ${width + 2 * margin} ${high}`} role="img" font-family="Helvetica, Arial, sans-serif">
      <title>{heading}</title>
      <rect width={width + 2 * margin} height={high} fill={print.paper} />
      <text x={margin} y="28" font-size="17" font-weight="700" fill={print.ink}>{title}</text>
      <text x={margin} y="50" font-size="13" font-weight="700" fill={print.ink}>{heading}</text>
      <g transform={`translate(${margin} ${head})`}>{drawing}</g>
      <text x={margin} y={high - 8} font-size="10" fill={print.soft}>{`xccl-synth ${data.version}: ${data.command}`.slice(0, 100)}</text>
    </svg>
  );
}

function save(picture: VNode, what: string, kind: "svg" | "png") {
  const box = document.createElement("div");
  render(picture, box);
  const text = new XMLSerializer().serializeToString(box.firstElementChild!);
  const name = `${data.collective}-${several ? "machines" : machines[0]!.name}${what}`.replaceAll(/[^\w.-]+/g, "-");
  if (kind === "svg") saveSvg(text, `${name}.svg`);
  else void savePng(text, `${name}.png`);
}

export function saveFigure(measures: Measure[], kind: "svg" | "png") {
  save(<Figure measures={measures} />, measures.length === 1 ? `-${measures[0]!.name}` : "", kind);
}

export function saveDrawing(heading: string, name: string, drawing: VNode, width: number, height: number, kind: "svg" | "png") {
  save(<Alone heading={heading} drawing={drawing} width={width} height={height} />, `-${name}`, kind);
}
