"""Schedules: those of plans, and those that are written in Python."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Dict, Iterable, List, Optional, Sequence, Tuple, Type, Union

import numpy as np

from . import _xccl
from ._collective import Collective, collective_of
from ._arguments import CONVERTED, Long, whole_of
from ._border import LEAST, MOST, WHOLES, border_class, converted
from .errors import UsageError, Violation, WrongSchedule
from ._table import Column, Table
from ._topology import Machine, Topology, topology_of

_MOST_VIOLATIONS = 20  # that a verifier lists

if TYPE_CHECKING:
    import numpy.typing as npt

    from ._plan import Plan

if TYPE_CHECKING:
    Ranks = Annotated[Union[int, npt.NDArray[np.integer[Any]]], CONVERTED]
    Several = Annotated[Union[int, npt.NDArray[np.integer[Any]], Sequence[int]], CONVERTED]
else:
    Ranks = Several = Annotated[Any, CONVERTED]
"""One rank, or an array of them: a transfer for each."""


class Step:
    """A step of a schedule that is being written: ``with schedule.step(): ...``."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __enter__(self) -> "Step":
        return self

    def __exit__(self, *_: object) -> None:
        return None


@border_class
class Schedule:
    """Which chunks move from which rank to which, over which links, in which step.

    Written in Python::

        with Schedule("ring:4", "allgather") as s:
            for k in range(3):
                s.step()
                for r in range(4):
                    s.send(r, (r + 1) % 4, (r - k) % 4)
        plan = s.plan(size="1MiB")

    When the block ends, the schedule is proved; WrongSchedule says what is wrong. A step is order, not time: a transfer reads its
    source as it was before the step, and uses only what arrived in earlier steps.

    ``chunks`` cuts every part of the collective into so many chunks. The other arguments are those of Collective.
    """

    __slots__ = ("topology", "collective", "_writer", "_c", "_step", "_used", "_transfers", "_paths")

    def __init__(
        self,
        topology: Machine,
        collective: Union[str, Collective],
        *,
        chunks: Optional[int] = None,
        root: Optional[int] = None,
        ranks: Union[int, Iterable[int], None] = None,
        counts: Any = None,
        pairs: Any = None,
    ) -> None:
        self.topology: Topology = topology_of(topology)
        arguments = {"root": root, "ranks": ranks, "counts": counts, "pairs": pairs}
        made = collective_of(collective, self.topology.num_ranks, arguments)
        self.collective: Collective = made if chunks is None else made.with_chunks(chunks)
        self._writer: Optional[_xccl.ScheduleWriter] = _xccl.ScheduleWriter(self.topology._c, self.collective._c)
        self._step = 0
        self._used = False  # the current step has a transfer
        self._become(None)

    def _become(self, made: Optional["_xccl.Schedule"]) -> None:
        self._c = made
        self._transfers: Optional[Table] = None
        self._paths: Optional[List[Tuple[int, ...]]] = None

    @classmethod
    def _of(cls, made: "_xccl.Schedule") -> "Schedule":
        schedule = cls.__new__(cls)
        schedule.topology = Topology._of(made.topology)
        schedule.collective = Collective._of(made.collective)
        schedule._writer = None
        schedule._become(made)
        return schedule

    # Writing.

    def step(self) -> Step:
        """Begins the next step, unless the current one is empty. May open a block, which then stands for the step."""
        self._writing()
        if self._used:
            self._step += 1
            self._used = False
        return Step(self._step)

    def send(
        self,
        src: Ranks,
        dst: Several,
        chunk: Ranks,
        *,
        count: int = 1,
        path: Optional[Sequence[int]] = None,
    ) -> None:
        """Copies a chunk, or ``count`` chunks from it on, from one rank to another.

        The links are those between the two; of parallel ones the transfer takes the least loaded. ``path`` gives the numbers of
        the links instead. A list of destinations is one multicast, through a switch that can. Arrays of ranks and chunks are a
        transfer for each of their elements.
        """
        self._move(src, dst, chunk, count, path, False)

    def reduce(
        self,
        src: Several,
        dst: Ranks,
        chunk: Ranks,
        *,
        count: int = 1,
        path: Optional[Sequence[int]] = None,
    ) -> None:
        """Adds a chunk of one rank to what another holds. A list of sources is one sum in a switch that can. The rest is as in
        ``send``."""
        self._move(src, dst, chunk, count, path, True)

    def _move(self, src: Any, dst: Any, chunk: Any, count: int, path: Optional[Sequence[int]], reduce: bool) -> None:
        writer = self._writing()
        if path is not None:
            writer.add_over(list(path), _one("chunk", chunk), count, reduce, self._step)
        elif isinstance(src if reduce else dst, (list, tuple)):
            sources = converted("src", src, WHOLES) if reduce else [_one("src", src)]
            destinations = [_one("dst", dst)] if reduce else converted("dst", dst, WHOLES)
            writer.add_tree(sources, destinations, _one("chunk", chunk), count, reduce, self._step)
        elif any(isinstance(value, np.ndarray) and value.ndim > 0 for value in (src, dst, chunk)):
            columns = _columns({"src": src, "dst": dst, "chunk": chunk})
            writer.add_many(columns[0], columns[1], columns[2], count, reduce, self._step)
        else:
            writer.add(_one("src", src), _one("dst", dst), _one("chunk", chunk), count, reduce, self._step)
        self._used = True

    def chunk(self, part: Union[int, Tuple[int, int]] = 0, index: int = 0) -> int:
        """The number of a chunk: ``collective.chunk``."""
        return self.collective.chunk(part, index)

    def close(self) -> None:
        """Ends the writing and proves the schedule. Raises WrongSchedule with all that is wrong."""
        self._end()
        violations = self.violations()
        if violations:
            more, least = len(violations) - 1, "at least " if len(violations) >= _MOST_VIOLATIONS else ""
            wrong = WrongSchedule(str(violations[0]) + (f" (and {least}{more} more)" if more else ""))
            wrong.violations = tuple(violations)
            raise wrong

    def __enter__(self) -> "Schedule":
        self._writing()
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if kind is None:
            self.close()

    def _writing(self) -> "_xccl.ScheduleWriter":
        if self._writer is None:
            raise UsageError("schedule: its writing has ended; expected transfers before")
        return self._writer

    def _end(self) -> "_xccl.Schedule":
        if self._writer is not None:
            made = self._writer.finish()
            self._writer = None
            self._become(made)
        assert self._c is not None
        return self._c

    # Facts about the schedule that is written.

    @property
    def num_transfers(self) -> int:
        """Transfers; of a compressed schedule those of its columns."""
        return self._c.num_transfers if self._c is not None else self._writing().num_transfers

    @property
    def num_steps(self) -> int:
        """Steps."""
        return self._end().num_steps

    @property
    def is_compressed(self) -> bool:
        """Whether the columns stand for their translates over a symmetric machine, too. ``expanded`` writes them out."""
        return self._end().is_compressed

    @property
    def transfers(self) -> Table:
        """One row a transfer, in order of steps: ``step``, ``src`` and ``dst`` (ranks; of a multicast or a sum in a switch the
        first), ``first`` and ``count`` (chunks), ``reduce`` (adds instead of copying), ``path`` (an index of ``paths``).

        The columns are the memory of the C++ schedule: nothing is copied.
        """
        if self._transfers is None:
            self._transfers = Table(self._end().columns())
        return self._transfers

    @property
    def paths(self) -> List[Tuple[int, ...]]:
        """The links of each path, in order."""
        if self._paths is None:
            first, links = self._end().paths()
            self._paths = [tuple(links[begin:end].tolist()) for begin, end in zip(first[:-1], first[1:])]
        return self._paths

    def path_columns(self) -> Tuple[Column, Column]:
        """The same as two arrays: path p has ``links[first[p]:first[p + 1]]``."""
        return self._end().paths()

    def expanded(self, most_transfers: Long = 1 << 22) -> "Schedule":
        """The plain form of a compressed schedule. Raises LimitReached beyond ``most_transfers``; each takes 25 bytes."""
        return Schedule._of(self._end().expanded(most_transfers))

    def violations(self) -> List[Violation]:
        """What the verifier finds: empty where the schedule does what its collective says."""
        return [Violation(row) for row in self._end().violations()]

    def to_pandas(self) -> Any:
        """The transfers as a ``pandas.DataFrame``."""
        return self.transfers.to_pandas()

    def plan(self, *, name: str = "python", **options: Any) -> "Plan":
        """The schedule as a plan: proved, bounded, timed and, unless ``lower=False``, lowered to a program. ``name`` stands where
        plans name their engine. The options are those of ``xccl_synth.plan`` that do not steer a search: ``size``, ``model``,
        ``machine``, ``max_ctas``, ``lower``, ``verify_passes``, ``time_limit``, ``progress``."""
        from ._plan import plan_of_schedule

        return plan_of_schedule(self._end(), name, options)

    def simulate(self, sizes: Any = "64MiB", *, model: str = "pipelined") -> Table:
        """How long the schedule takes at these sizes on ideal links: the columns of ``xccl_synth.simulate``."""
        timed: Table = self.plan(lower=False, machine="none").simulate(sizes, model=model)
        return timed

    def __reduce__(self) -> Tuple[Any, ...]:
        if self._writer is not None:
            raise UsageError("schedule: it is being written; expected its end, close(), before a copy")
        return Schedule._of, (self._c,)

    def __repr__(self) -> str:
        state = "being written" if self._writer is not None else f"{self.num_steps} steps"
        return f"<Schedule of {self.collective.name} on {self.topology.name}: {self.num_transfers} transfers, {state}>"


def _one(name: str, value: Any) -> int:
    """A rank or a chunk where there may not be several."""
    expected = "one chunk, or an array of them" if name == "chunk" else "one rank, or an array; a list is a multicast's dst or a sum's src"
    return whole_of(name, value, expected, LEAST, MOST)


def _columns(given: Dict[str, Any]) -> List[Column]:
    """Arrays and numbers as columns of one length."""
    arrays = []
    for name, value in given.items():
        array = value if isinstance(value, np.ndarray) else np.asarray(_one(name, value))
        if array.dtype.kind not in "iu" or (array.size > 0 and not (LEAST <= int(array.min()) and int(array.max()) <= MOST)):
            raise UsageError(f"{name}: an array of {array.dtype}; expected whole numbers of 32 bits")
        arrays.append(array)
    try:
        return [np.ascontiguousarray(column, dtype=np.int32) for column in np.broadcast_arrays(*arrays)]
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in zip(given, arrays))
        raise UsageError(f"src, dst, chunk: arrays of shapes {shapes}; expected one shape") from None
