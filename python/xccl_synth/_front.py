"""The front between fewest steps and fewest rounds a chunk."""

from __future__ import annotations

from typing import Any, Iterable, List, Mapping, Optional, Union

from . import _xccl
from ._arguments import Progress
from ._border import border, border_class
from ._collective import Collective, collective_of
from .errors import UsageError
from ._plan import Plan, options_of, times
from ._table import Table
from ._topology import Machine, topology_of


@border_class
class Front(Table):
    """The points of ``pareto``: each takes more steps and fewer rounds a chunk than those before it."""

    def __init__(self, columns: Mapping[str, Any], plans: List[Plan], stopped: str, interrupted: bool) -> None:
        super().__init__(columns)
        self.plans = plans
        """By row, the plan."""
        self.complete = not stopped
        """Whether every point is proved, and no number of steps gives fewer rounds a chunk than the last."""
        self.stopped = stopped
        """Why the front is not complete: ``time``, ``work``, ``Ctrl-C``, a limit; empty: it is."""
        self.interrupted = interrupted
        """Whether Ctrl-C ended the search."""

    def fastest(self) -> Plan:
        """The plan whose schedule takes the least time at the front's size."""
        return min(self.plans, key=lambda plan: plan.time_ps)

    def __repr__(self) -> str:
        return f"<Front of {len(self)} points, {'complete' if self.complete else f'stopped by {self.stopped}'}>"


@border
def pareto(
    topology: Machine,
    collective: Union[str, Collective],
    *,
    ranks: Union[int, Iterable[int], None] = None,
    root: Optional[int] = None,
    counts: Any = None,
    pairs: Any = None,
    progress: Optional[Progress] = None,
    stop: "Optional[_xccl.Stop]" = None,
    **options: Any,
) -> Front:
    """Every point between fewest steps and fewest rounds a chunk, each with its plan and a proof: ``xccl-synth plan --pareto``.

    One row a point: ``chunks`` of a part, ``steps``, ``rounds`` (each the time of a chunk on the slowest link), ``cost`` (R/C as an
    exact text, ``7/6``) and ``cost_value``, ``bound`` (R/C in so many steps is at least this), ``proved_by`` (``open``: no proof),
    ``proved_chunks`` (the proof holds up to so many chunks; 0: for any number), ``found_by``, ``seconds`` of the search, and
    ``time_us`` and ``time_ps`` of the schedule at ``size``. ``plans`` of the front has the plan of each row.

    ``chunks`` and ``steps`` are the most that are tried. Further options are those of ``plan``; ``lower=True`` makes programs, too.
    Ctrl-C, ``stop`` and ``time_limit`` (seconds) end the search with the points so far.
    """
    for given in ("engine", "rounds", "start"):
        if given in options:
            raise UsageError(f"{given}: not for a front; smt finds it, from no plan, with the rounds of each point")
    options.setdefault("lower", False)
    machine = topology_of(topology)
    made = collective_of(collective, machine.num_ranks, {"ranks": ranks, "root": root, "counts": counts, "pairs": pairs})
    watching = _xccl.Watching(stop, progress)
    columns, plans, stopped = _xccl.front(machine._c, made._c, options_of(**options), watching)
    interrupted = watching.interrupted
    return Front(times(columns), [Plan(plan, interrupted) for plan in plans], stopped, interrupted)
