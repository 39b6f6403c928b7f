// Saves what is drawn, for a paper: the text of an SVG, a PNG of it, or a PNG of a canvas.

function save(blob: Blob, name: string) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function saveSvg(text: string, name: string) {
  save(new Blob([text], { type: "image/svg+xml" }), name);
}

// The picture that an SVG file shows, `scale` pixels for each of its own.
export async function savePng(text: string, name: string, scale = 3) {
  const image = new Image();
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
