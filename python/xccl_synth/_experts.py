"""Plans of expert dispatch and combine: made, read, timed, run."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from . import _xccl
from ._arguments import PathLike, Size, path_of, size_of
from ._border import border_class
from .errors import UsageError, Violation
from ._table import Table
from ._topology import Topology

CALLS = ("dispatch", "combine")


@border_class
class ExpertPlan:
    """The routes of tokens to their experts and back on a machine, proved for every routing that fits (docs/dispatch.md). It never
    changes.

    ``facts`` has the keys of ``xccl-synth plan -c dispatch --json``. Times are those of links, on drawn routings.
    """

    __slots__ = ("_c", "_facts")

    def __init__(self, made: "_xccl.ExpertPlan") -> None:
        self._c = made
        self._facts: Optional[Dict[str, Any]] = None

    @staticmethod
    def load(path: PathLike) -> "ExpertPlan":
        """Reads a plan file and proves it. Its times are those on uniform routings. Raises InvalidInput with the place, or the first
        violation."""
        return ExpertPlan(_xccl.ExpertPlan.load(path_of(path)))

    def save(self, path: PathLike) -> None:
        """Writes a plan file: the bytes that ``xccl-synth plan -c dispatch -o`` writes."""
        self._c.save(path_of(path))

    @property
    def facts(self) -> Dict[str, Any]:
        """All that is known of the plan, by the keys of ``xccl-synth plan -c dispatch --json``, and its ``routing``."""
        if self._facts is None:
            self._facts = self._c.facts()
        return dict(self._facts)

    @property
    def topology(self) -> Topology:
        """The machine."""
        return Topology._of(self._c.topology)

    @property
    def collective(self) -> str:
        """The call that it was chosen for; it runs both."""
        return str(self.facts["collective"])

    @property
    def route(self) -> str:
        """The name of its way: ``rail``."""
        return str(self.facts["route"])

    @property
    def time_us(self) -> float:
        """The median time of the draws, in microseconds."""
        return float(self.facts["time_median_us"])

    @property
    def ratio(self) -> float:
        """The median of time over bound."""
        return float(self.facts["ratio_median"])

    def verify(self) -> List[Violation]:
        """Proves the plan again: what the verifier finds, which is nothing."""
        return [Violation(row) for row in self._c.violations()]

    def simulate(self, routing: str = "uniform", *, draws: int = 1) -> Table:
        """Moves the messages of drawn calls over the links one by one: ``time_us``, beside ``predicted_us``, ``bound_us`` and
        ``ratio``. ``routing``: "uniform", "zipf:1.0", or a file."""
        return Table(self._c.simulate(routing, draws))

    def run(
        self,
        routing: str = "uniform",
        *,
        tokens: Optional[int] = None,
        dtype: str = "bfloat16",
        iters: int = 20,
        timeout: float = 30,
    ) -> Table:
        """Runs dispatch and combine with a thread of this process for every rank, and checks every element.

        One row a call: ``call``, ``time_us``, ``logical_gb_per_s``, ``fabric_gb_per_s`` and ``host_gb_per_s`` of one rank,
        ``wrong`` (bytes and elements). ``tokens``: of a rank (default: as many as fit memory). ``timeout``: seconds without
        progress.
        """
        if iters < 1:
            raise UsageError(f"iters: {iters}; expected at least 1")
        if not 0 < timeout < 1e9:
            raise UsageError(f"timeout: {timeout}; expected seconds")
        return Table(self._c.run(routing, tokens, dtype, iters, timeout))

    def to_svg(self, file: Optional[PathLike] = None) -> str:
        """The routes of rank 0's rows as a picture: ``xccl-synth view PLAN -o FILE.svg``. ``file`` also writes it there."""
        return _written(self._c.picture(False), file)

    def view(self, file: Optional[PathLike] = None) -> str:
        """The page of ``xccl-synth view``: one HTML text that needs no network; ``file`` also writes it there."""
        return _written(self._c.picture(True), file)

    def __reduce__(self) -> Tuple[Any, ...]:
        return ExpertPlan, (self._c,)

    def __repr__(self) -> str:
        facts = self.facts
        return f"<ExpertPlan {facts['collective']} on {facts['topology']} by {facts['route']}: ratio {facts['ratio_median']:.4f}>"

    def _repr_html_(self) -> str:
        return self._c.picture(False)


def _written(text: str, file: Optional[PathLike]) -> str:
    if file is not None:
        _xccl.write_file(path_of(file, "file"), text.encode())
    return text


def plan_experts(
    machine: Topology,
    collective: str,
    watching: "_xccl.Watching",
    *,
    experts: Optional[int],
    top_k: Optional[int],
    tokens: Optional[int],
    row: Optional[Size],
    routing: Optional[str],
    aim: Optional[str],
    draws: Optional[int],
    seed: int,
) -> ExpertPlan:
    """What ``plan`` does for dispatch and combine."""
    if aim not in (None, "latency", "throughput"):
        raise UsageError(f"aim: '{aim}'; expected latency or throughput")
    row_bytes = None if row is None else size_of("row", row)
    made = _xccl.ExpertPlan.make(
        machine._c, collective, experts, top_k, tokens, row_bytes, routing or "uniform", aim or "throughput", draws, seed, watching
    )
    return ExpertPlan(made)


__all__ = ["CALLS", "ExpertPlan", "plan_experts"]
