// The charts as one picture for a paper: on white, the same for every window and theme.
import { render, type VNode } from "preact";
import * as format from "../shared/format";
import { savePng, saveSvg } from "../shared/download";
import { print } from "../shared/look";
import { Lines, lineStep } from "../shared/lines";
import { widthOf, wrapped } from "../shared/text";
import { BarChart, LineChart, barsHeight, chartHeight } from "./chart";
import { chosen, data, machines, several, shown, sizes, timesAreOf, title, type Measure } from "./state";

const under = `${several ? machines.map(({ name, ranks }) => `${name} ${format.counted(ranks, "rank")}`).join(", ") : format.counted(machines[0]!.ranks, "rank")}, ${data.model} model`;
const wide = 440, head = 84, margin = 16;

function Figure({ measures }: { measures: Measure[] }) {
  const Chart = sizes.length > 1 ? LineChart : BarChart;
  const height = sizes.length > 1 ? chartHeight(shown.value, wide - 12) : barsHeight(shown.value, sizes[0]!, wide - 12);
  const width = 2 * margin + measures.length * wide, high = head + height + footHeight(width);
  return (
    <svg xmlns="http://www.w3.org/2000/svg" width={width} height={high} viewBox={`0 0 ${width} ${high}`} role="img" font-family="Helvetica, Arial, sans-serif">
      <title>{title}</title>
      <rect width={width} height={high} fill={print.paper} />
      <text x={margin} y="28" font-size="17" font-weight="700" fill={print.ink}>{title}</text>
      <text x={margin} y="46" font-size="11" fill={print.soft}>{under}</text>
      {measures.map((measure, i) => (
        <g key={measure.name} transform={`translate(${margin + i * wide} ${head})`}>
          <text x="4" y="-8" font-size="13" font-weight="700" fill={print.ink}>{measure.title}</text>
          {sizes.length > 1 && <text x={4 + widthOf(measure.title, 13, 700) + 8} y="-8" font-size="10" fill={print.soft}>both axes logarithmic</text>}
          <Chart measure={measure} engines={shown.value} sizes={sizes} look={print} width={wide - 12} height={height} chosen={chosen.value} />
        </g>
      ))}
      <Foot width={width} high={high} />
    </svg>
  );
}

// How the figure was made, in as many lines as that takes.
const foot = (width: number) => [`Times of ${timesAreOf}`, `xccl-synth ${data.version}: ${data.command}`].flatMap((text) => wrapped(text, width - 2 * margin, 10));
const footHeight = (width: number) => foot(width).length * lineStep + 12;
function Foot({ width, high }: { width: number; high: number }) {
  const lines = foot(width);
  return <Lines lines={lines} x={margin} y={high - 8 - (lines.length * lineStep) / 2} font-size="10" fill={print.soft} />;
}

// A drawing of its own with its title.
function Alone({ heading, drawing, width, height }: { heading: string; drawing: VNode; width: number; height: number }) {
  const high = head + height + footHeight(width + 2 * margin);
  return (
    <svg xmlns="http://www.w3.org/2000/svg" width={width + 2 * margin} height={high} viewBox={`0 0 ${width + 2 * margin} ${high}`} role="img" font-family="Helvetica, Arial, sans-serif">
      <title>{heading}</title>
      <rect width={width + 2 * margin} height={high} fill={print.paper} />
      <text x={margin} y="28" font-size="17" font-weight="700" fill={print.ink}>{title}</text>
      <text x={margin} y="50" font-size="13" font-weight="700" fill={print.ink}>{heading}</text>
      <g transform={`translate(${margin} ${head})`}>{drawing}</g>
      <Foot width={width + 2 * margin} high={high} />
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
