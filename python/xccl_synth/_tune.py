"""Plan books: the plans for a machine in a directory, from which runtimes take one for each call."""

from __future__ import annotations

import os
from typing import Any, Iterable, List, Mapping, Optional, Tuple, Union

from . import _xccl
from ._arguments import PathLike, Progress, Sizes, path_of, sizes_of
from ._border import border, border_class
from ._collective import Collective
from .errors import UsageError
from ._plan import Plan, options_of
from ._table import Table
from ._topology import Machine, topology_of

_ROOTED = ("broadcast", "reduce", "gather", "scatter")
Roots = Union[int, str, Iterable[int]]
"""A rank, several, or ``"all"``."""


@border_class
class Book(Table):
    """The rows of ``tune`` and ``book``, and where their plans lie."""

    def __init__(self, columns: Mapping[str, Any], path: PathLike, machine: str) -> None:
        super().__init__(columns)
        self.path = os.fspath(path)
        """The directory; ``xccl-synth run`` and ``emit`` take it, and so do the libraries."""
        self.machine = machine
        """The source of the model of the machine that programs are timed by, or why the measured model was refused."""

    @property
    def files(self) -> List[str]:
        """The names of the plan files, each once."""
        return list(dict.fromkeys(file for file in self["file"].tolist() if file))

    def plan(self, file: str) -> Plan:
        """Reads and proves one of the plans."""
        return Plan.load(os.path.join(self.path, file))

    def __repr__(self) -> str:
        return f"<Book {self.path}: {len(self.files)} plans, {len(self)} rows>"


@border
def tune(
    topology: Machine,
    path: PathLike,
    collectives: Union[str, Iterable[str]] = ("allreduce", "allgather", "reduce_scatter"),
    sizes: Sizes = "1KiB:64MiB:x16",
    *,
    roots: Roots = 0,
    iters: int = 5,
    progress: Optional[Progress] = None,
    **options: Any,
) -> Book:
    """Measures this machine's threads, plans every collective at every size, runs the plans on them, and keeps the fastest in a
    plan book: ``xccl-synth tune --backend cpu``.

    ``path``: the book's directory, made where there is none. ``sizes``: bytes, or texts such as "1KiB:64MiB:x16". ``roots``: of
    collectives that have one, ranks or "all". ``iters``: operations that a time is the mean of. ``machine``: a model in place of
    measured constants. Further options are those of ``plan``; ``time_limit`` is in seconds, of all together.

    One row a collective and size: ``collective``, ``root`` (-1: none), ``size_bytes``, ``engine``, ``time_us`` (measured; the
    slowest rank), ``predicted_us`` (NaN where the measured model was refused), ``ctas`` (threadblocks of a rank), ``file``.
    ``progress`` is told when a collective ends. Ctrl-C raises KeyboardInterrupt, and no book is written. GPUs, and hosts that processes measure, are the command line's.
    """
    machine = topology_of(topology)
    made = _collectives(collectives, roots, machine.num_ranks)
    asked = _options(options)
    watching = _xccl.Watching(None, progress)
    columns, source = _xccl.tune(machine._c, made, sizes_of("sizes", sizes), path_of(path), iters, asked, watching)
    return Book(columns, path, source)


@border_class
class NcclBook(Book):
    """The rows of ``book``."""

    def __init__(self, columns: Mapping[str, Any], path: PathLike, machine: str, tuner_rows: int) -> None:
        super().__init__(columns, path, machine)
        self.tuner_rows = tuner_rows
        """Rows of ``tuner_table``: where another of NCCL's own algorithms is faster than the one that it chooses."""

    @property
    def tuner_table(self) -> str:
        """The file for NCCL's tuner, in the book."""
        return os.path.join(self.path, "nccl-tuner.table")


@border
def book(
    topology: Machine,
    path: PathLike,
    collectives: Union[str, Iterable[str]] = ("allreduce", "allgather", "reduce_scatter", "broadcast", "reduce"),
    sizes: Sizes = "1KiB:1GiB:x4",
    *,
    roots: Roots = 0,
    least_gain: float = 1.1,
    tests: Union[PathLike, Iterable[PathLike]] = (),
    progress: Optional[Progress] = None,
    **options: Any,
) -> NcclBook:
    """Makes a book of the plans that are faster than NCCL by its own model, and a table for NCCL's tuner: ``xccl-synth book``.
    Nothing is run.

    ``path``, ``sizes``, ``roots`` and further options are those of ``tune``. A plan is kept where NCCL's time is ``least_gain`` times
    the plan's or more. ``tests``: what nccl-tests wrote with ``-J``, runs with NCCL_ALGO and NCCL_PROTO and one without, whose times
    make the table (default: NCCL's algorithms are simulated).

    One row a collective and size: ``collective``, ``root`` (-1: none), ``size_bytes``, ``engine``, ``predicted_us``, ``ctas``,
    ``nccl_algorithm``, ``nccl_protocol``, ``nccl_channels``, ``nccl_us``, ``gain`` (NCCL's time over the plan's), ``kept``, and
    ``file`` (empty: NCCL's own is as good). Raises InvalidInput where the GPUs are none that NCCL has a model of.
    """
    machine = topology_of(topology)
    made = _collectives(collectives, roots, machine.num_ranks)
    asked = _options(options)
    files: List[PathLike] = [tests] if isinstance(tests, (str, os.PathLike)) else list(tests)
    watching = _xccl.Watching(None, progress)
    columns, source, tuner_rows = _xccl.book(
        machine._c,
        made,
        sizes_of("sizes", sizes),
        path_of(path),
        least_gain,
        [path_of(file, "tests") for file in files],
        asked,
        watching,
    )
    return NcclBook(columns, path, source, tuner_rows)


def _options(options: Mapping[str, Any]) -> "_xccl.PlanOptions":
    for given in ("size", "lower", "relays"):
        if given in options:
            raise UsageError(f"{given}: not for a book; its plans have programs, for all ranks, and sizes are given as sizes")
    return options_of(**options)


def _collectives(names: Union[str, Iterable[str]], roots: Roots, num_ranks: int) -> "List[_xccl.Collective]":
    listed = names.split(",") if isinstance(names, str) else list(names)
    if isinstance(roots, str) and roots != "all":
        raise UsageError(f"roots: '{roots}'; expected ranks, or all")
    ranks = list(range(num_ranks)) if isinstance(roots, str) else [roots] if isinstance(roots, int) else list(roots)
    asked: List[Tuple[str, Optional[int]]] = []
    for name in listed:
        asked += [(name, root) for root in ranks] if name in _ROOTED else [(name, None)]
    return [Collective(name, num_ranks, root=root)._c for name, root in asked]
