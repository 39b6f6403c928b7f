// The page of `xccl-synth compare --html`.
import { render } from "preact";
import { Page } from "../compare/page";
import "../shared/base.css";
import "../shared/charts.css";

const root = document.getElementById("page")!;
root.replaceChildren();
render(<Page />, root);
document.documentElement.dataset["ready"] = "true";
