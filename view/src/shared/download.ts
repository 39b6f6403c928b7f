// Saves what is drawn, for a paper: an SVG with its styles written into it, or a PNG of it or of a canvas.

function save(blob: Blob, name: string) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const styled = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "stroke-linecap",
  "opacity", "font-family", "font-size", "font-weight", "text-anchor", "dominant-baseline", "visibility", "display"];

// The text of an SVG file that looks as the element does on the page, on the page's paper.
export function svgText(svg: SVGSVGElement, background: string): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const from = [svg, ...svg.querySelectorAll("*")];
  const to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    const target = to[i]!;
    for (const name of styled) target.setAttribute(name, style.getPropertyValue(name));
    target.removeAttribute("class");
    target.removeAttribute("style");
  });
  const box = svg.viewBox.baseVal;
  const shape = box && box.width > 0 ? box : new DOMRect(0, 0, svg.clientWidth, svg.clientHeight);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("viewBox", `${shape.x} ${shape.y} ${shape.width} ${shape.height}`);
  copy.setAttribute("width", String(shape.width));
  copy.setAttribute("height", String(shape.height));
  const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of Object.entries({ x: shape.x, y: shape.y, width: shape.width, height: shape.height }))
    paper.setAttribute(name, String(value));
  paper.setAttribute("fill", background);
  copy.prepend(paper);
  return new XMLSerializer().serializeToString(copy);
}

export function saveSvg(svg: SVGSVGElement, background: string, name: string) {
  save(new Blob([svgText(svg, background)], { type: "image/svg+xml" }), name);
}

export async function savePng(svg: SVGSVGElement, background: string, name: string, scale = 2) {
  const image = new Image();
  const text = svgText(svg, background);
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(image.width * scale);
  canvas.height = Math.round(image.height * scale);
  canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
  saveCanvas(canvas, name);
}

export function saveCanvas(canvas: HTMLCanvasElement, name: string) {
  canvas.toBlob((blob) => blob && save(blob, name), "image/png");
}

export function saveText(text: string, type: string, name: string) {
  save(new Blob([text], { type }), name);
}
