// The page of `xccl-synth compare --failures N --html`.
import { render } from "preact";
import { Page } from "../failures/page";
import "../shared/base.css";
import "../shared/charts.css";

const root = document.getElementById("page")!;
root.replaceChildren();
render(<Page />, root);
document.documentElement.dataset["ready"] = "true";
