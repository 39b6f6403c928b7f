"""How plans look: a few lines of text, and in a notebook a table."""

from __future__ import annotations

import html
import pathlib
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

from . import _xccl
from ._table import html_table
from .errors import LimitReached

if TYPE_CHECKING:
    from ._plan import Plan


_NOTEBOOK_S = 30  # that a cell waits for the page
# High enough for the numbers, the whole machine, and the controls below it; the rest is scrolled to.
_FRAME = "width: 100%; height: 780px; box-sizing: border-box; border: 1px solid #8886; border-radius: 8px"


def _lines(facts: Dict[str, Any]) -> List[Tuple[str, str]]:
    time = _xccl.format_time
    # The plan's time is that of its program on its machine, and else that of its schedule on ideal links.
    on_machine = facts["time_program_ps"] is not None and bool(facts["machine"])
    time_ps = facts["time_program_ps"] if on_machine else facts["time_ps"]
    busbw = facts["busbw_gb_per_s"] * facts["time_ps"] / time_ps if time_ps else facts["busbw_gb_per_s"]
    lines = [
        ("engine", facts["engine"] + (f": {facts['note']}" if facts["note"] else "")),
        ("time", f"{time(time_ps)}, busbw {busbw:.4g} GB/s"),
        ("", f"ideal links{' ' + time(facts['time_ps']) if on_machine else ''}: bandwidths and latencies alone"),
        *([("", facts["no_machine"])] if facts["no_machine"] else []),
        (
            "bound",
            f"{time(facts['bound_ps'])} by {facts['bound_kind']}, ratio {time_ps / facts['bound_ps'] if facts['bound_ps'] else 1:.4f}"
            + (", exact" + (" on ideal links" if on_machine else "") if facts["exact"] else ""),
        ),
        ("schedule", f"{facts['steps']} steps, {facts['transfers']} transfers in {facts['messages']} messages"),
    ]
    if facts["time_program_ps"] is not None:
        where = f"on {facts['machine']}" if on_machine else f"simulated {time(facts['time_program_ps'])}"
        lines.append(("program", f"{facts['threadblocks']} threadblocks a rank at most, {where}"))
    elif facts["no_program"]:
        lines.append(("program", f"none: {facts['no_program']}"))
    if facts["relays"]:
        lines.append(("relays", ", ".join(str(rank) for rank in facts["relays"])))
    return lines


def _title(facts: Dict[str, Any]) -> str:
    size = _xccl.format_size(facts["size_bytes"])
    unit = "" if size.endswith("B") else "B"
    return f"{facts['collective']} on {facts['topology']}: {facts['ranks']} ranks, {size}{unit}, {facts['model']} model"


def plan_text(facts: Dict[str, Any]) -> str:
    return "\n".join([_title(facts)] + [f"  {name:<10} {text}" for name, text in _lines(facts)])


def bundled_page(name: str) -> str:
    """A page without its data: ``view`` or ``compare``."""
    return (pathlib.Path(__file__).parent / f"{name}.html").read_text(encoding="utf-8")


def framed(page: str, title: str) -> str:
    """A page in a frame of its own, for a notebook."""
    return f'<iframe srcdoc="{html.escape(page)}" style="{_FRAME}" title="{html.escape(title)}"></iframe>'


def view_page(plan: "Plan", time_limit_s: Optional[float] = None) -> str:
    facts = plan.facts
    name = f"{facts['collective']} on {facts['topology']}"
    return _xccl.view_page(plan._c, bundled_page("view"), name, "xccl_synth.Plan.view", time_limit_s)


def plan_html(plan: "Plan") -> str:
    """The page in a frame of its own; a table where the page takes too long to make."""
    facts = plan.facts
    try:
        return framed(view_page(plan, _NOTEBOOK_S), _title(facts))
    except LimitReached:
        pass
    return f"<div><b>{html.escape(_title(facts))}</b>{html_table((), [list(line) for line in _lines(facts)])}</div>"
