"""Results as columns."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from ._border import border_class, refuse
from .errors import MissingModule, NotThere, UsageError

if TYPE_CHECKING:
    import numpy.typing as npt

    Column = npt.NDArray[Any]
else:
    Column = np.ndarray

_SHOWN = 20  # rows of a printed table


@border_class
class Table:
    """Columns of equal length, by name: ``table["src"]``. Units are in the names. As in pandas, ``len`` counts rows, and
    iteration names columns.

    The arrays cannot be written to. Those of nodes, links and transfers are the memory of the C++ values themselves, which
    live as long as an array does.
    """

    def __init__(
        self, columns: Mapping[str, Union[Column, Sequence[Any]]], codes: Optional[Mapping[str, Sequence[str]]] = None
    ) -> None:
        self._columns: Dict[str, Column] = {name: _array(values) for name, values in columns.items()}
        self._codes = dict(codes or {})
        lengths = {len(column) for column in self._columns.values()}
        if len(lengths) > 1:
            raise UsageError(f"columns: of {sorted(lengths)} rows; expected one length")
        self._rows = lengths.pop() if lengths else 0

    def __getitem__(self, name: str) -> Column:
        if name not in self._columns:
            raise NotThere(f"no column {name!r}; columns are {', '.join(self._columns)}")
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __len__(self) -> int:
        return self._rows

    def keys(self) -> List[str]:
        """The names of the columns; ``dict(table)`` has them all."""
        return list(self._columns)

    @property
    def codes(self) -> Dict[str, List[str]]:
        """For columns of codes, what each stands for: ``codes["op"][0]``."""
        return {name: list(names) for name, names in self._codes.items()}

    def row(self, index: int) -> Dict[str, Any]:
        """One row as Python values; codes as what they stand for."""
        if not -self._rows <= index < self._rows:
            raise NotThere(f"index: no row {index}; rows are 0..{self._rows - 1}" if self._rows else "index: no rows")
        return {name: self._cell(name, index) for name in self._columns}

    def rows(self) -> Iterator[Dict[str, Any]]:
        """All rows, as ``row`` has them."""
        return (self.row(index) for index in range(self._rows))

    def where(self, keep: Union[Column, List[int], List[bool]]) -> "Table":
        """The rows that a mask or a list of indices names."""
        rows = np.asarray(keep if len(keep) > 0 else np.zeros(0, dtype=np.int64))
        masks = rows.dtype == np.bool_
        if rows.ndim != 1 or rows.dtype.kind not in "biu" or (masks and len(rows) != self._rows):
            refuse("keep", keep, f"a mask of {self._rows} rows, or a list of their indices")
        if not masks and len(rows) > 0 and not -self._rows <= rows.min() <= rows.max() < self._rows:
            raise NotThere(f"keep: rows {rows.min()} to {rows.max()}; rows are 0..{self._rows - 1}")
        return Table({name: column[rows] for name, column in self._columns.items()}, self._codes)

    def sorted_by(self, name: str) -> "Table":
        """The rows in ascending order of a column; equal ones keep theirs."""
        return self.where(np.argsort(self[name], kind="stable"))

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``; columns of codes become categories. Needs pandas (Debian: python3-pandas)."""
        try:
            import pandas  # type: ignore[import]
        except ImportError as missing:
            raise MissingModule("to_pandas: no module pandas; hint: apt install python3-pandas, or pip install pandas") from missing
        frame = pandas.DataFrame({name: column for name, column in self._columns.items()})
        for name, names in self._codes.items():
            frame[name] = pandas.Categorical.from_codes(np.asarray(self._columns[name], dtype=np.int64), list(names))
        return frame

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        for column in self._columns.values():
            column.setflags(write=False)

    def _cell(self, name: str, index: int) -> Any:
        value = self._columns[name][index]
        if name in self._codes:
            return self._codes[name][int(value)]
        return value.item() if isinstance(value, np.generic) else value

    def _texts(self) -> Tuple[List[List[str]], int]:
        """The cells of the first rows as texts, and how many rows there are beyond them."""
        shown = min(self._rows, _SHOWN)
        return [[_text(self._cell(name, i)) for name in self._columns] for i in range(shown)], self._rows - shown

    def __str__(self) -> str:
        rows, more = self._texts()
        names = list(self._columns)
        widths = [max([len(name)] + [len(row[c]) for row in rows]) for c, name in enumerate(names)]
        right = [np.issubdtype(self._columns[name].dtype, np.number) and name not in self._codes for name in names]
        lines = [
            "  ".join(cell.rjust(width) if number else cell.ljust(width) for cell, width, number in zip(row, widths, right)).rstrip()
            for row in [names] + rows
        ]
        return "\n".join(lines + ([f"... and {more} more rows"] if more else []))

    def __repr__(self) -> str:
        return f"<Table of {self._rows} rows: {', '.join(self._columns)}>"

    def _repr_html_(self) -> str:
        rows, more = self._texts()
        return html_table(list(self._columns), rows) + (f"<p>and {more} more rows</p>" if more else "")


def html_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A plain table for a notebook."""
    cells: Callable[[str, Sequence[str]], str] = lambda tag, row: "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row)
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    head = f"<thead><tr>{cells('th', names)}</tr></thead>" if names else ""
    return f"<table>{head}<tbody>{body}</tbody></table>"


def _array(values: Union[Column, Sequence[Any]]) -> Column:
    if isinstance(values, np.ndarray):
        return values
    if values and isinstance(values[0], (list, tuple)):
        array = np.empty(len(values), dtype=object)
        array[:] = [tuple(value) for value in values]
    else:
        array = np.array(values if values else [], dtype=None if values else str)
    array.setflags(write=False)
    return array


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)
