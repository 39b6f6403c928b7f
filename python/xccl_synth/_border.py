"""The border: arguments of public functions as Python gives them, checked against their annotations and converted.

A wrong argument is a UsageError, ``name: what was seen; what was expected``. Whole numbers have the 32 bits that the stages take,
unless ``Annotated[int, (least, most)]`` says otherwise. An ``Annotated`` type may name its converter; with a text, the function
that has the argument converts it.
"""

from __future__ import annotations

import collections.abc
import difflib
import functools
import inspect
import io
import math
import operator
import os
from typing import Annotated, Any, Callable, Dict, ForwardRef, List, NamedTuple, NoReturn, Optional, Tuple, TypeVar, Union, get_args, get_origin

import numpy as np

from .errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

LEAST, MOST = -(2**31), 2**31 - 1
_SHOWN = 60  # characters of a wrong value


class Converter(NamedTuple):
    """What is expected, in words, and the function that converts it or raises ``Refused``."""

    expected: str
    convert: Callable[[Any], Any]


class Refused(Exception):
    """A value that a converter does not take; its text says more than what the converter expects, or is empty."""


def refuse(name: str, value: Any, expected: str) -> NoReturn:
    """Raises the error of a wrong argument."""
    raise UsageError(f"{name}: {shown(value)}; expected {expected}")


def shown(value: Any) -> str:
    """A value in a message."""
    try:
        text = repr(value)
    except Exception:  # of somebody's own class
        text = f"<{type(value).__name__}>"
    text = text.encode(errors="backslashreplace").decode()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def whole(value: Any, least: int = LEAST, most: int = MOST) -> int:
    """A whole number: an int, or one of numpy."""
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise Refused
    try:
        number = operator.index(value)
    except TypeError:  # an array
        raise Refused from None
    if not least <= number <= most:
        raise Refused(f"a whole number from {_power(least)} to {_power(most)}")
    return number


def text(value: Any) -> str:
    """A text that can be written as UTF-8."""
    if not isinstance(value, str):
        raise Refused
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Refused("a text of whole characters") from None
    return value


def path(value: Any) -> bytes:
    """A file's name."""
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise Refused
    try:
        name = os.fsencode(value)
    except UnicodeEncodeError:
        raise Refused("a path of whole characters") from None
    if not name or b"\0" in name:
        raise Refused
    return name


def items(values: Any) -> List[Any]:
    """The items of a list, an array, a set or a generator; a text, a file and a number have none."""
    if isinstance(values, (str, bytes, io.IOBase)):
        raise Refused
    try:
        iterator = iter(values)
    except TypeError:
        raise Refused from None
    return list(iterator)


def converted(name: str, value: Any, converter: Converter) -> Any:
    """The value, or the error of an argument."""
    try:
        return converter.convert(value)
    except Refused as why:
        refuse(name, value, str(why) or converter.expected)


def listed(item: Converter) -> Converter:
    """Several values of a kind, as a list."""
    words = f"a list with {item.expected} in each place"

    def convert(values: Any) -> List[Any]:
        made = []
        for value in items(values):
            try:
                made.append(item.convert(value))
            except Refused as why:
                raise Refused(f"{words}, not {shown(value)}" if not str(why) else f"{words}, {why}") from None
        return made

    return Converter(words, convert)


WHOLE = Converter("a whole number", whole)
TEXT = Converter("a text", text)
PATH = Converter("a path", path)
WHOLES = listed(WHOLE)


class _Parameters:
    """The parameters of a function, and the converter of each."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.called = function.__qualname__.replace(".__init__", "").replace("options_of", "plan")
        self.places: List[Tuple[str, Converter]] = []
        self.names: Dict[str, Converter] = {}
        self.needed: List[str] = []  # those by place without a default: the first of places
        self.more: Optional[Tuple[str, Converter]] = None  # by place, any number
        self.takes_all_names = False
        for name, parameter in inspect.signature(function).parameters.items():
            converter = converter_of(parameter.annotation, function.__globals__)
            if parameter.kind is parameter.VAR_POSITIONAL:
                self.more = (name, converter)
            elif parameter.kind is parameter.VAR_KEYWORD:
                self.takes_all_names = True  # which are checked where they are handed on to
            else:
                self.names[name] = converter
                if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                    self.places.append((name, converter))
                    if parameter.default is parameter.empty:
                        self.needed.append(name)

    def check_names(self, count: int, given: Dict[str, Any]) -> None:
        """Whether a call with so many arguments by place, and these by name, fits."""
        if count > len(self.places) and self.more is None:
            own = self.places[:1] == [("self", _ANY)]
            raise UsageError(f"{self.called}: {count - own} arguments by place; expected at most {len(self.places) - own}")
        for name in given:
            if name not in self.names and not self.takes_all_names:
                near = difflib.get_close_matches(name, self.names, 1)
                raise UsageError(f"{name}: no such argument of {self.called}" + (f"; did you mean '{near[0]}'?" if near else ""))
            if any(name == place for place, _ in self.places[:count]):
                raise UsageError(f"{name}: given twice; expected once")
        for name in self.needed[count:]:
            if name not in given:
                raise UsageError(f"{name}: missing; {self.called} needs it")


def border(function: F) -> F:
    """Checks the arguments of a function before it is called."""
    parameters: List[_Parameters] = []

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if not parameters:  # annotations name classes that are not there when the function is
            parameters.append(_Parameters(function))
        own = parameters[0]
        own.check_names(len(args), kwargs)
        made = [converted(name, value, converter) for (name, converter), value in zip(own.places, args)]
        if own.more is not None:
            made += [converted(own.more[0], value, own.more[1]) for value in args[len(own.places) :]]
        named = {name: converted(name, value, own.names[name]) if name in own.names else value for name, value in kwargs.items()}
        return function(*made, **named)

    return checked  # type: ignore[return-value]


def border_class(made: C) -> C:
    """Checks the arguments of all public functions of a class."""
    for name, member in list(vars(made).items()):
        if name.startswith("_") and name not in ("__init__", "__getitem__"):
            continue
        if isinstance(member, staticmethod):
            setattr(made, name, staticmethod(border(member.__func__)))
        elif inspect.isfunction(member):
            setattr(made, name, border(member))
    return made


def converter_of(annotation: Any, names: Dict[str, Any]) -> Converter:
    """The converter that an annotation asks for."""
    while isinstance(annotation, (str, ForwardRef)):
        annotation = eval(annotation if isinstance(annotation, str) else annotation.__forward_arg__, names)
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        if isinstance(arguments[1], Converter):
            return arguments[1]
        if isinstance(arguments[1], tuple):
            least, most = arguments[1]
            return Converter("a whole number", lambda value: whole(value, least, most))
        return _ANY
    if origin is Union:
        return _either([converter_of(argument, names) for argument in arguments])
    if origin is collections.abc.Callable or annotation is collections.abc.Callable:
        return Converter("a function", lambda value: value if callable(value) else _no())
    if origin is collections.abc.Mapping:
        return _mapping(*(converter_of(argument, names) for argument in arguments))
    if origin in (collections.abc.Iterable, collections.abc.Sequence, list):
        return listed(converter_of(arguments[0], names))
    if origin is tuple:
        return _tuple([converter_of(argument, names) for argument in arguments])
    kind = os.PathLike if origin is os.PathLike else annotation
    if kind is os.PathLike:
        return Converter("a path", lambda value: value if isinstance(value, os.PathLike) and path(value) else _no())
    if isinstance(kind, type):
        return Converter(f"a {kind.__name__}", lambda value: value if isinstance(value, kind) else _no())
    return _ANY


def _no() -> NoReturn:
    raise Refused


def _number(value: Any) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise Refused
    try:
        return float(value)
    except OverflowError:
        raise Refused("a number below 10^308") from None


def _either(converters: List[Converter]) -> Converter:
    def convert(value: Any) -> Any:
        said = ""
        for converter in converters:
            try:
                return converter.convert(value)
            except Refused as why:
                said = said or str(why)
        raise Refused(said)

    words = [converter.expected for converter in converters if converter.expected != "None"]
    return Converter(" or ".join(dict.fromkeys(words)), convert)


def _mapping(key: Converter, item: Converter) -> Converter:
    def convert(value: Any) -> Any:
        if not isinstance(value, collections.abc.Mapping):
            raise Refused
        return {key.convert(name): item.convert(value[name]) for name in value}

    return Converter(f"a dict, with {item.expected} for {key.expected}", convert)


def _tuple(items: List[Converter]) -> Converter:
    def convert(value: Any) -> Any:
        if not isinstance(value, (tuple, list)) or len(value) != len(items):
            raise Refused
        return tuple(item.convert(part) for item, part in zip(items, value))

    return Converter(f"({', '.join(item.expected for item in items)})", convert)


def _power(limit: int) -> str:
    for change, words in ((0, ""), (1, " - 1"), (-1, " + 1")):
        power = abs(limit + change)
        if power > 2**16 and power & (power - 1) == 0:
            return f"{'-' if limit < 0 else ''}2^{int(math.log2(power))}{words}"
    return str(limit)


_ANY = Converter("anything", lambda value: value)
_PLAIN: Dict[Any, Converter] = {
    Any: _ANY,
    inspect.Parameter.empty: _ANY,
    int: WHOLE,
    str: TEXT,
    float: Converter("a number", _number),
    bool: Converter("True or False", lambda value: bool(value) if isinstance(value, (bool, np.bool_)) else _no()),
    type(None): Converter("None", lambda value: None if value is None else _no()),
    None: Converter("None", lambda value: None if value is None else _no()),
}
