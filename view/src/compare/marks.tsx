// Marks of lines, so that they are told apart without colours.
const shapes: ((r: number) => string)[] = [
  (r) => `M${-r} 0A${r} ${r} 0 1 1 ${r} 0A${r} ${r} 0 1 1 ${-r} 0Z`, // circle
  (r) => `M${-r} ${-r}H${r}V${r}H${-r}Z`, // square
  (r) => `M0 ${-1.3 * r}L${1.2 * r} ${r}H${-1.2 * r}Z`, // triangle
  (r) => `M0 ${-1.4 * r}L${1.4 * r} 0L0 ${1.4 * r}L${-1.4 * r} 0Z`, // diamond
  (r) => `M0 ${1.3 * r}L${1.2 * r} ${-r}H${-1.2 * r}Z`, // triangle that stands on its tip
  (r) => `M${-1.4 * r} ${-0.45 * r}H${-0.45 * r}V${-1.4 * r}H${0.45 * r}V${-0.45 * r}H${1.4 * r}V${0.45 * r}H${0.45 * r}V${1.4 * r}H${-0.45 * r}V${0.45 * r}H${-1.4 * r}Z`, // plus
  (r) => `M${-0.6 * r} ${-1.2 * r}H${0.6 * r}L${1.3 * r} 0L${0.6 * r} ${1.2 * r}H${-0.6 * r}L${-1.3 * r} 0Z`, // hexagon
];

export function Mark({ shape, x, y, r, colour, paper, hollow = false, edge }: { shape: number; x: number; y: number; r: number; colour: string; paper: string; hollow?: boolean; edge?: string | undefined }) {
  const kind = (shape + shapes.length) % shapes.length;
  return <path d={shapes[kind]!(r)} transform={`translate(${x.toFixed(1)} ${y.toFixed(1)})`} fill={hollow ? paper : colour} stroke={edge ?? (hollow ? colour : paper)} stroke-width={edge || hollow ? 1.5 : 0.75} data-mark={kind} />;
}
