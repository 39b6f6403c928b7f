"""Collectives: which rank holds which data before and after, and the chunks that move."""

from __future__ import annotations

from typing import Annotated, Any, Dict, Iterable, List, Optional, Sequence, Tuple, Union

from . import _xccl
from ._arguments import CONVERTED, PathLike, path_of, whole_of
from ._border import Refused, border, border_class, items, refuse
from .errors import UsageError
from ._table import Column, Table

Counts = Annotated[Union[Sequence[int], Sequence[Sequence[int]], Column], CONVERTED]
Pairs = Iterable[Tuple[int, int]]
Holdings = Iterable[Union[Tuple[int, int], Tuple[int, int, Iterable[int]]]]
_MOST_RANKS = 1 << 22


@border_class
class Collective:
    """A collective of some ranks, each of whose parts is cut into chunks.

    ``kind`` is one of ``collectives()``. ``ranks`` are the members: how many (0, 1, ...), or their numbers in order. ``root``
    is that of broadcast, reduce, gather and scatter (default: the first member). ``counts`` are the relative sizes of parts:
    one a member for allgatherv and reduce_scatterv, a matrix [source][destination] for alltoallv. ``pairs`` are those of
    sendrecv: (source, destination).

    Parts come in this order. allgather(v), gather: one a source. reduce_scatter(v), scatter: one a destination. alltoall(v):
    one a pair, source-major. sendrecv: one a pair. broadcast, reduce, allreduce: one. Chunks are numbered part by part.
    """

    __slots__ = ("_c", "_chunks")

    def __init__(
        self,
        kind: str,
        ranks: Union[int, Iterable[int]],
        *,
        root: Optional[int] = None,
        counts: Optional[Counts] = None,
        pairs: Optional[Pairs] = None,
        chunks: Optional[int] = None,
    ) -> None:
        made = _xccl.Collective.create(
            kind,
            _members(ranks),
            root,
            [] if counts is None else _flat(counts),
            [] if pairs is None else list(pairs),
        )
        self._become(made if chunks is None else made.with_chunks(chunks))

    def _become(self, made: "_xccl.Collective") -> None:
        self._c = made
        self._chunks: Optional[Table] = None

    @classmethod
    def _of(cls, made: "_xccl.Collective") -> "Collective":
        collective = cls.__new__(cls)
        collective._become(made)
        return collective

    @staticmethod
    def custom(
        name: str,
        ranks: Union[int, Iterable[int]],
        before: Holdings,
        after: Holdings,
        *,
        weights: Optional[Iterable[int]] = None,
    ) -> "Collective":
        """A collective of your own: who holds each part before, and who must hold it after.

        Rows are (rank, part), for data of the rank itself, or (rank, part, ranks), for the sum of what these contribute. ``weights``
        are the relative sizes of the parts (default: all equal).
        """
        tables = [[_held(*row) for row in rows] for rows in (before, after)]
        parts = max((part for rows in tables for _, part, _ in rows), default=-1) + 1
        sizes = [1] * min(parts, _MOST_RANKS) if weights is None else list(weights)
        return Collective._of(_xccl.Collective.custom(name, _members(ranks), sizes, tables[0], tables[1]))

    @staticmethod
    def from_file(path: PathLike, num_ranks: int) -> "Collective":
        """Reads a collective of your own: a JSON file with its two tables (docs/ir.md). ``num_ranks`` is the machine's."""
        return Collective._of(_xccl.Collective.from_file(path_of(path), num_ranks))

    def with_chunks(self, chunks: int) -> "Collective":
        """The same collective with every part cut into so many equal chunks."""
        return Collective._of(self._c.with_chunks(chunks))

    @property
    def name(self) -> str:
        """``allgather``, or the name of a collective of your own."""
        return self._c.name

    @property
    def ranks(self) -> Column:
        """The members, in order."""
        return self._c.ranks

    @property
    def root(self) -> Optional[int]:
        """The root; None where there is none."""
        return self._c.root

    @property
    def num_parts(self) -> int:
        """Parts of user data."""
        return self._c.num_parts

    @property
    def num_chunks(self) -> int:
        """Chunks of all parts."""
        return self._c.num_chunks

    @property
    def reduces(self) -> bool:
        """Whether some rank ends with a sum."""
        return self._c.reduces

    @property
    def chunks(self) -> Table:
        """One row a chunk, by its number: ``part`` and ``weight`` (its share of the part)."""
        if self._chunks is None:
            self._chunks = Table(self._c.chunk_columns())
        return self._chunks

    def chunk(self, part: Union[int, Tuple[int, int]] = 0, index: int = 0) -> int:
        """The number of a chunk: the ``index``-th one of a part. A part is a member's place, or a pair of places (source,
        destination) in alltoall(v)."""
        if isinstance(part, tuple):
            members = len(self.ranks)
            if self.num_parts != members * members or not all(0 <= place < members for place in part):
                raise UsageError(f"part: no pair {part[0]}>{part[1]} in {self.name} of {members} ranks")
            part = part[0] * members + part[1]
        return self._c.chunk_at(part, index)

    def before(self, chunk: int) -> Dict[int, List[int]]:
        """Who holds a chunk before: by rank, the ranks whose data it has there."""
        return dict(self._c.holders(chunk, True))

    def after(self, chunk: int) -> Dict[int, List[int]]:
        """Who must hold a chunk in the end: by rank, the ranks whose data must be in it."""
        return dict(self._c.holders(chunk, False))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Collective) and self._c.equals(other._c)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Tuple[Any, ...]:
        return Collective._of, (self._c,)

    def __repr__(self) -> str:
        return f"<Collective {self.name} of {len(self.ranks)} ranks, {self.num_chunks} chunks>"


def _members(ranks: Union[int, Iterable[int]]) -> List[int]:
    """How many, or which."""
    if not isinstance(ranks, int):
        return list(ranks)
    return list(range(whole_of("ranks", ranks, f"1 to {_MOST_RANKS} ranks, or a list of them", 1, _MOST_RANKS)))


def _flat(counts: Any) -> List[int]:
    """The counts of a list or of a matrix, row by row."""
    expected = "whole numbers from 0 on: a list, or a matrix as a list of rows"
    made: List[int] = []
    try:
        for row in items(counts):
            try:
                cells = items(row)
            except Refused:
                cells = [row]
            made += [whole_of("counts", cell, expected) for cell in cells]
    except Refused:
        refuse("counts", counts, expected)
    return made


def _held(rank: int, part: int, whose: Optional[Iterable[int]] = None) -> Tuple[int, int, List[int]]:
    return rank, part, [rank] if whose is None else list(whose)


def collective_of(collective: Any, num_ranks: int, arguments: Dict[str, Any]) -> Collective:
    """A collective as it is, or one made of its name and the arguments that are given."""
    given = {name: value for name, value in arguments.items() if value is not None}
    if isinstance(collective, Collective):
        if given:
            raise UsageError(f"{', '.join(given)}: not together with a Collective, which has its own")
        return collective
    return Collective(collective, given.pop("ranks", num_ranks), **given)


@border
def collectives() -> List[str]:
    """The names of all collectives."""
    return list(_xccl.collective_names)
