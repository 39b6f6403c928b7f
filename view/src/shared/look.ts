// The colours of a drawing that can be saved as a file.
import { palette, theme, type Theme } from "./theme";

export interface Look {
  theme: Theme;
  ink: string;
  soft: string;
  line: string;
  strong: string; // of lines that lead to a label
  paper: string;
}
export function lookNow(): Look {
  const { ink, soft, line, paper } = palette.value;
  return { theme: theme.value, ink, soft, line, strong: palette.value["strong-line"], paper };
}
// For a paper: on white, the same for every theme.
export const print: Look = { theme: "light", ink: "#16191c", soft: "#565d64", line: "#e2e5e8", strong: "#8b939b", paper: "#ffffff" };
