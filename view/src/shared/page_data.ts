// The data that xccl-synth wrote into the page.
export function readPageData<T>(): T {
  const text = document.getElementById("data")?.textContent ?? "";
  return JSON.parse(text) as T;
}
