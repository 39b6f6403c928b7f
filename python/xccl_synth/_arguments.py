"""Arguments as people write them, as the numbers that the stages take."""

from __future__ import annotations

import os
from typing import Annotated, Any, Callable, Iterable, List, TypeVar, Union

from . import _xccl
from ._border import PATH, Converter, Refused, converted, items, path, refuse, whole
from .errors import InvalidInput, UsageError

T = TypeVar("T")
CONVERTED = "by the function that has the argument"
Size = Annotated[Union[int, str], CONVERTED]
"""Whole bytes, or a text: ``"64MiB"``."""
Sizes = Annotated[Union[int, str, Iterable[Union[int, str]]], CONVERTED]
"""One or several; a text may be a list or a range: ``"1KiB,1MiB"``, ``"1KiB:1GiB:x4"``."""
PathLike = Annotated[Union[str, os.PathLike[str]], Converter(PATH.expected, lambda value: path(value) and value)]
Long = Annotated[int, (0, 2**63 - 1)]
Progress = Callable[[str], object]
"""Called now and then with what a call does."""


def size_of(name: str, size: Any) -> int:
    if isinstance(size, str):
        return parsed(name, _xccl.parse_size, size)
    return whole_of(name, size, "whole bytes, or a text such as 64MiB")


def sizes_of(name: str, sizes: Any) -> List[int]:
    if isinstance(sizes, str):
        return parsed(name, _xccl.parse_sizes, sizes)
    try:
        made = [size_of(name, size) for size in items(sizes)]
    except Refused:
        return [size_of(name, sizes)]
    if not made:
        raise UsageError(f"{name}: none; expected at least one")
    return made


def whole_of(name: str, value: Any, expected: str, least: int = 0, most: int = 2**63 - 1) -> int:
    """A whole number; ``expected`` says of what."""
    try:
        return whole(value, least, most)
    except Refused:
        refuse(name, value, expected)


def parsed(name: str, parse: Callable[[str], T], text: str) -> T:
    """An argument's error is one of its use, with its name in front."""
    try:
        text.encode()
        return parse(text)
    except UnicodeEncodeError:
        refuse(name, text, "a text of whole characters")
    except (InvalidInput, UsageError) as wrong:
        raise UsageError(f"{name}: {wrong}") from None


def path_of(file: PathLike, name: str = "path") -> bytes:
    made: bytes = converted(name, file, PATH)
    return made
