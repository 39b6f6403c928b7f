// The page of `xccl-synth view`: one plan, or the plans of a book.
import { render } from "preact";
import { Page } from "../view/page";
import "../shared/base.css";
import "../view/view.css";

const root = document.getElementById("page")!;
root.replaceChildren();
render(<Page />, root);
document.documentElement.dataset["ready"] = "true";
