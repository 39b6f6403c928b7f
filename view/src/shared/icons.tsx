// Signs on buttons, drawn, so that they look alike with every font.
const paths: Record<string, string> = {
  play: "M4 2.5v11l9-5.5z",
  pause: "M4 2.5h3v11H4zM9 2.5h3v11H9z",
  start: "M3 3h2v10H3zM13 3v10L6 8z",
  back: "M11 3v10L4.5 8z",
  forward: "M5 3v10l6.5-5z",
  minus: "M3 7.2h10v1.6H3z",
  plus: "M3 7.2h4.2V3h1.6v4.2H13v1.6H8.8V13H7.2V8.8H3z",
  fit: "M2 6V2h4v1.6H3.6V6zM10 2h4v4h-1.6V3.6H10zM2 10h1.6v2.4H6V14H2zM12.4 10H14v4h-4v-1.6h2.4z",
  moon: "M6 1.8A6.4 6.4 0 1 0 14.2 10 5.2 5.2 0 0 1 6 1.8z",
  sun: "M8 4.6a3.4 3.4 0 1 0 0 6.8 3.4 3.4 0 0 0 0-6.8zM7.3 1h1.4v2H7.3zM7.3 13h1.4v2H7.3zM1 7.3h2v1.4H1zM13 7.3h2v1.4h-2zM2.6 3.6l1-1L5 4l-1 1zM11 12l1-1 1.4 1.4-1 1zM2.6 12.4 4 11l1 1-1.4 1.4zM11 4l1.4-1.4 1 1L12 5z",
};

export function Icon({ name }: { name: keyof typeof paths }) {
  return (
    <svg class="sign" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={paths[name]} fill="currentColor" />
    </svg>
  );
}
