"""Arguments as people write them, as the numbers that the stages take."""

from __future__ import annotations

import os
from typing import Callable, Iterable, List, TypeVar, Union

from . import _xccl
from .errors import InvalidInput, UsageError

T = TypeVar("T")
Size = Union[int, str]
"""Bytes, or a text: ``"64MiB"``."""
Sizes = Union[Size, Iterable[Size]]
"""One or several; a text may be a list or a range: ``"1KiB,1MiB"``, ``"1KiB:1GiB:x4"``."""
PathLike = Union[str, "os.PathLike[str]"]
Progress = Callable[[str], object]
"""Called now and then with what a call does."""


def size_of(name: str, size: Size) -> int:
    if isinstance(size, str):
        return parsed(name, _xccl.parse_size, size)
    if not 0 <= size < 2**63:
        raise UsageError(f"{name}: {size}; expected bytes, or a text such as 64MiB")
    return int(size)


def sizes_of(name: str, sizes: Sizes) -> List[int]:
    if isinstance(sizes, str):
        return parsed(name, _xccl.parse_sizes, sizes)
    if not isinstance(sizes, Iterable):
        return [size_of(name, sizes)]
    return [size_of(name, size) for size in sizes]


def parsed(name: str, parse: Callable[[str], T], text: str) -> T:
    """An argument's error is one of its use, with its name in front."""
    try:
        return parse(text)
    except (InvalidInput, UsageError) as wrong:
        raise UsageError(f"{name}: {wrong}") from None


def path_of(path: PathLike) -> bytes:
    return os.fsencode(path)
