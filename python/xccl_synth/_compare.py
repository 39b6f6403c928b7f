"""Engines side by side, bounds, and many plans at once."""

from __future__ import annotations

import os
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import product
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Union

from . import _xccl
from ._arguments import PathLike, Progress, Size, Sizes, path_of, size_of, sizes_of
from ._border import border, border_class
from ._collective import Collective, collective_of
from .errors import Infeasible, InvalidInput, LimitReached, UsageError, Violation, XcclError
from ._experts import ExpertPlan
from ._plan import Bound, Plan, options_of, plan, times, written
from ._show import bundled_page, framed
from ._table import Table
from ._topology import Machine, Topology, topology_of


@border_class
class Comparison(Table):
    """The rows of ``compare``: at each size, the fastest first."""

    def __init__(self, made: "_xccl.Comparison", plan_again: Dict[str, Any], others: Mapping[str, Plan], interrupted: bool) -> None:
        super().__init__(times(made.columns()))
        self._c = made
        self._again, self._others = plan_again, dict(others)
        self.title = made.title
        """What is compared: ``allreduce on dgx-a100: 8 ranks, pipelined model``."""
        self.left_out = made.left_out
        """Engines that could not take part, with the reason; sizes that were not reached."""
        self.model = made.model
        """The time model."""
        self.machine = made.machine or None
        """The source of the model of the machine that programs are timed on; None: schedules on ideal links."""
        self.interrupted = interrupted
        """Whether Ctrl-C ended the comparison."""

    def best(self) -> Table:
        """The fastest row of every size."""
        first: Dict[int, int] = {}
        for row, size in enumerate(self["size_bytes"].tolist()):
            if size not in first or self["time_ps"][row] < self["time_ps"][first[size]]:
                first[size] = row
        return self.where(list(first.values()))

    def plan(self, engine: Optional[str] = None, size: Optional[Size] = None) -> Plan:
        """The plan of a row, made again, or one of the ``others``. Default: the fastest engine of the largest size."""
        rows = self if engine is None else self.where(self["engine"] == engine)
        asked = max(rows["size_bytes"].tolist(), default=0) if size is None else size_of("size", size)
        at = rows.where(rows["size_bytes"] == asked)
        if len(at) == 0:
            made = ", ".join(f"{row['engine']} at {_xccl.format_size(row['size_bytes'])}" for row in self.best().rows())
            raise UsageError(f"{'engine' if len(rows) == 0 else 'size'}: no such row; the fastest are {made}")
        name = at.row(int(at["time_ps"].argmin()))["engine"]
        return self._others[name] if name in self._others else plan(engine=name, size=asked, **self._again)

    def explain(
        self,
        engine: Optional[str] = None,
        size: Optional[Size] = None,
        *,
        time_limit: Optional[float] = None,
        progress: Optional[Progress] = None,
    ) -> str:
        """Why a row takes as long as it does: ``plan(engine, size).explain()``."""
        return self.plan(engine, size).explain(time_limit=time_limit, progress=progress)

    def view(self, file: Optional[PathLike] = None) -> str:
        """The page of ``xccl-synth compare --html``: charts and tables. One HTML text that needs no network; ``file`` also writes it
        there. In a notebook a comparison shows it by itself."""
        return written(self._c.page(bundled_page("compare"), "xccl_synth.Comparison.view"), file)

    def to_svg(self, file: Optional[PathLike] = None) -> str:
        """The charts as a picture for a paper: ``xccl-synth compare --svg``. ``file`` also writes it there."""
        return written(self._c.svg("xccl_synth.Comparison.to_svg"), file)

    def _repr_html_(self) -> str:
        return framed(self.view(), self.title)

    def __repr__(self) -> str:
        return f"<Comparison {self.title}: {len(self)} rows>"


@border_class
class Sweep(Table):
    """The rows of ``sweep``, in the order of the combinations."""

    def __init__(self, columns: Mapping[str, Any], interrupted: bool) -> None:
        super().__init__(columns)
        self.interrupted = interrupted
        """Whether Ctrl-C ended the sweep: combinations that had not ended have no row."""


@border
def bound(
    topology: Machine,
    collective: Union[str, Collective],
    size: Size = "64MiB",
    *,
    ranks: Union[int, Iterable[int], None] = None,
    root: Optional[int] = None,
    counts: Any = None,
    pairs: Any = None,
    model: str = "pipelined",
) -> Bound:
    """How fast any plan could be: distance, cuts, flows. The arguments are those of ``plan``."""
    machine = topology_of(topology)
    made = collective_of(collective, machine.num_ranks, {"ranks": ranks, "root": root, "counts": counts, "pairs": pairs})
    return Bound(_xccl.bound(machine._c, made._c, size_of("size", size), model))


@border
def verify(what: Union[Plan, ExpertPlan, PathLike]) -> List[Violation]:
    """Proves a plan, or a plan file: what the verifier finds, up to 20 at each level. Empty: the plan is right. Raises InvalidInput
    for a file that is no plan."""
    if isinstance(what, (Plan, ExpertPlan)):
        return what.verify()
    path = path_of(what, "what")
    of_experts = _xccl.verify_expert_file(path)
    return [Violation(row) for row in (_xccl.verify_file(path) if of_experts is None else of_experts)]


@border
def simulate(
    what: Union[Plan, PathLike],
    sizes: Optional[Sizes] = None,
    *,
    model: Optional[str] = None,
    level: str = "schedule",
    machine: Optional[str] = None,
) -> Table:
    """How long a plan, or that of a file, takes at any sizes: ``Plan.simulate``."""
    made = what if isinstance(what, Plan) else Plan.load(what)
    return made.simulate(sizes, model=model, level=level, machine=machine)


@border
def compare(
    topology: Machine,
    collective: Union[str, Collective],
    sizes: Sizes = "1KiB:1GiB:x16",
    *,
    engines: Optional[Iterable[str]] = None,
    others: Optional[Mapping[str, Plan]] = None,
    ranks: Union[int, Iterable[int], None] = None,
    root: Optional[int] = None,
    counts: Any = None,
    pairs: Any = None,
    progress: Optional[Progress] = None,
    **options: Any,
) -> Comparison:
    """Ranks engines per size, with their distance from the bound.

    ``engines``: names, or ["all"] (default: all for this collective but smt, which may search for long). ``others``: plans of
    your own by name, for the same collective and machine, that take part. Programs are timed where the machine has a model, else
    schedules on ideal links. The columns are those of ``Plan.simulate``; further options are those of ``plan``. Ctrl-C ends the
    comparison after a size (``interrupted``), and ``progress`` is told of each.
    """
    machine = topology_of(topology)
    made = collective_of(collective, machine.num_ranks, {"ranks": ranks, "root": root, "counts": counts, "pairs": pairs})
    watching = _xccl.Watching(None, progress)
    named = [] if engines is None else [engines] if isinstance(engines, str) else list(engines)
    theirs = [(name, other._c) for name, other in (others or {}).items()]
    for name, other in (others or {}).items():
        if other.topology != machine or other.collective.name != made.name:
            raise InvalidInput(f"others: {name} is {other.collective.name} on {other.topology.name}; expected what is compared")
    compared = _xccl.compare(machine._c, made._c, named, sizes_of("sizes", sizes), options_of(**options), theirs, watching)
    again = {"topology": machine, "collective": made, "lower": True, **options}
    return Comparison(compared, again, others or {}, watching.interrupted)


@border
def sweep(
    topologies: Union[Machine, Iterable[Machine]],
    collectives: Union[str, Iterable[str]] = "allreduce",
    sizes: Sizes = "64MiB",
    engines: Union[str, Iterable[str]] = "auto",
    *,
    jobs: int = 1,
    progress: Optional[Progress] = None,
    keep: Optional[Callable[[Dict[str, Any], Plan], None]] = None,
    **options: Any,
) -> Sweep:
    """Plans all combinations, ``jobs`` of them at a time on threads, into one table.

    One row a combination, in their order: what was asked (``topology``, ``collective``, ``size_bytes``, ``engine``), ``status``
    (ok, infeasible, limit, error), ``error`` (its text), and of each plan ``made_by``, ``time_us``, ``time_program_us`` (nan
    without ``lower=True``), ``busbw_gb_per_s``, ``bound_us``, ``ratio``, ``exact``, ``steps``, ``transfers``, ``synthesis_s``.
    ``keep(row, plan)`` is called with every plan. Further options are those of ``plan``. Ctrl-C ends the sweep (``interrupted``)
    with the rows that it has. ``xccl-synth sweep`` does the same with a process for each, and goes on where it was ended.
    """
    options.setdefault("lower", False)
    options_of(**options)
    if jobs < 1:
        raise UsageError(f"jobs: {jobs}; expected at least 1")
    machines = {index: topology_of(machine) for index, machine in enumerate(_listed(topologies))}
    combinations = list(product(machines, _listed(collectives), sizes_of("sizes", sizes), _listed(engines)))
    rows: Dict[int, Dict[str, Any]] = {}
    stop = _xccl.Stop()

    def one(number: int) -> Dict[str, Any]:
        machine, collective, size, engine = combinations[number]
        asked = {"topology": machines[machine].name, "collective": collective, "size_bytes": size, "engine": engine}
        return _row(asked, lambda: plan(machines[machine], collective, size=size, engine=engine, stop=stop, **options), keep)

    pool = ThreadPoolExecutor(jobs)
    left: Dict["Future[Dict[str, Any]]", int] = {}
    interrupted = False
    try:
        left = {pool.submit(one, number): number for number in range(len(combinations))}
        while left:
            ended, _ = wait(left, timeout=0.1, return_when=FIRST_COMPLETED)
            for future in ended:
                number = left.pop(future)
                rows[number] = future.result()
                if progress is not None:
                    progress(f"{len(rows)} of {len(combinations)}")
    except KeyboardInterrupt:
        interrupted = True
    finally:
        stop.ask()
        pool.shutdown(wait=False, cancel_futures=True)
    ordered = [rows[number] for number in sorted(rows)]
    return Sweep({name: [row[name] for row in ordered] for name in ordered[0]} if ordered else {}, interrupted)


@border
def engines() -> Table:
    """The engines: ``name`` and ``summary``."""
    names, summaries = zip(*_xccl.engines)
    return Table({"name": list(names), "summary": list(summaries)})


def _row(asked: Dict[str, Any], make: Callable[[], Plan], keep: Optional[Callable[[Dict[str, Any], Plan], None]]) -> Dict[str, Any]:
    nan = float("nan")
    row: Dict[str, Any] = {**asked, "status": "ok", "error": "", "made_by": "", "time_us": nan, "time_program_us": nan}
    row.update(busbw_gb_per_s=nan, bound_us=nan, ratio=nan, exact=False, steps=-1, transfers=-1, synthesis_s=nan)
    try:
        made = make()
    except XcclError as wrong:
        row["status"] = "infeasible" if isinstance(wrong, Infeasible) else "limit" if isinstance(wrong, LimitReached) else "error"
        row["error"] = str(wrong)
        return row
    facts = made.facts
    row["made_by"] = facts["engine"]
    for name in ("time_us", "busbw_gb_per_s", "bound_us", "ratio", "exact", "steps", "transfers", "synthesis_s"):
        row[name] = facts[name]
    if facts["time_program_us"] is not None:
        row["time_program_us"] = facts["time_program_us"]
    if keep is not None:
        keep(row, made)
    return row


def _listed(what: Any) -> List[Any]:
    return [what] if isinstance(what, (str, Topology, os.PathLike)) else list(what)
