// The page of `xccl-synth view`: one plan, or those of a book.
import { render } from "preact";
import { readPageData } from "../shared/page_data";
import { theme, switchTheme } from "../shared/theme";
import { HelpDialog, useShortcuts } from "../shared/keyboard";
import "../shared/base.css";

const data = readPageData<unknown>();

function Page() {
  const shortcuts = [{ keys: ["t"], shown: "T", does: "switch between light and dark", run: switchTheme }];
  useShortcuts(shortcuts);
  return (
    <main>
      <h1>view ({theme.value})</h1>
      <pre>{JSON.stringify(data).slice(0, 200)}</pre>
      <HelpDialog shortcuts={shortcuts} />
    </main>
  );
}

const root = document.getElementById("page")!;
root.replaceChildren();
render(<Page />, root);
