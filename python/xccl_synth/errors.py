"""The exceptions of this package. Their texts are those of the command line: ``place: what was seen; what was expected``.

==================  ===========================================================  ============================
exception           means                                                        also a
==================  ===========================================================  ============================
``InvalidInput``    a file, a plan, a schedule or a machine is wrong             ``ValueError``
``UsageError``      an argument is wrong; its name opens the text                ``ValueError``, ``TypeError``
``NotThere``        a table has no such column or row                            ``KeyError``, ``IndexError``
``MissingModule``   a Python module that is needed is not installed              ``ImportError``
``Infeasible``      it is proved that there is no answer
``LimitReached``    a limit was reached before anything was found
``SystemFailure``   the machine has no more memory or threads                    ``OSError``
``PeerEnded``       another process of a run ended
``InternalError``   an invariant of XCCL itself is broken                        ``RuntimeError``
==================  ===========================================================  ============================
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Iterable, Tuple


class XcclError(Exception):
    """What every exception of this package is."""

    exit_code: int = 4
    """What ``xccl-synth`` exits with for the same error."""


class InvalidInput(XcclError, ValueError):
    """A file, a plan, a schedule or a machine is wrong."""

    exit_code = 1


class WrongSchedule(InvalidInput):
    """A schedule does not do what its collective says. ``violations`` has all that was found."""

    violations: Tuple["Violation", ...] = ()


class UsageError(XcclError, ValueError, TypeError):
    """An argument is wrong; its name opens the text."""

    exit_code = 2


class NotThere(UsageError, KeyError, IndexError):
    """A table has no such column or row."""

    def __str__(self) -> str:
        return Exception.__str__(self)  # KeyError's would be quoted


class MissingModule(XcclError, ImportError):
    """A Python module that is needed is not installed."""

    exit_code = 1


class Infeasible(XcclError):
    """It is proved that there is no answer."""

    exit_code = 3


class InternalError(XcclError, RuntimeError):
    """An invariant of XCCL itself is broken."""

    exit_code = 4


class LimitReached(XcclError):
    """A limit was reached before anything was found."""

    exit_code = 5


class SystemFailure(XcclError, OSError):
    """The machine has no more memory or threads."""

    exit_code = 5


class PeerEnded(XcclError):
    """Another process of a run ended; its own failure says more."""

    exit_code = 5


class XcclWarning(UserWarning):
    """What a file lacks or loses."""


def warn(lines: Iterable[str]) -> None:
    """Warns of each line at the place outside this package that called it."""
    package, frame, level = os.path.dirname(__file__), sys._getframe(1), 2
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == package:
        frame, level = frame.f_back, level + 1
    for line in lines:
        warnings.warn(line, XcclWarning, stacklevel=level)


class Violation(Tuple[str, str, str]):
    """A verifier's finding: ``rule``, ``where`` and ``text``. docs/ir.md lists the rules."""

    __slots__ = ()

    @property
    def rule(self) -> str:
        """The rule that is broken: ``S3``."""
        return self[0]

    @property
    def where(self) -> str:
        """The place: ``step 1``."""
        return self[1]

    @property
    def text(self) -> str:
        """What was seen there."""
        return self[2]

    def __str__(self) -> str:
        return f"[{self.rule}] {self.where}: {self.text}"

    def __repr__(self) -> str:
        return f"Violation({str(self)!r})"
