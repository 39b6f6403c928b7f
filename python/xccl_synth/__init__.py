"""XCCL in Python: topology-aware collectives, planned, proved, timed, emitted and run by the library of ``xccl-synth``.

>>> import xccl_synth as xccl
>>> plan = xccl.plan("dgx-a100", "allreduce", size="64MiB")
>>> plan.save("allreduce.plan.json")
>>> plan.transfers.to_pandas()

docs/python.md is a tutorial. Times are microseconds (``_us``) or exact picoseconds (``_ps``), sizes bytes, and bandwidths bytes
per second or GB/s (10^9): the unit is in the name. Functions that take long let other threads of Python run.
"""

from __future__ import annotations

import atexit
from typing import NoReturn

from .errors import (
    Infeasible,
    InternalError,
    InvalidInput,
    LimitReached,
    MissingModule,
    NotThere,
    PeerEnded,
    SystemFailure,
    UsageError,
    Violation,
    WrongSchedule,
    XcclError,
    XcclWarning,
)

try:
    from . import _xccl
    from ._collective import Collective, collectives
    from ._compare import Comparison, Sweep, bound, compare, engines, simulate, sweep, verify
    from ._experts import ExpertPlan
    from ._front import Front, pareto
    from ._plan import Bound, Plan, Program, plan
    from ._schedule import Schedule
    from ._table import Table
    from ._topology import Failed, Submachine, Topology, TopologyBuilder, library
    from ._tune import Book, NcclBook, book, tune

    __version__: str = _xccl.version
    Stop = _xccl.Stop

    # Calls that a second Ctrl-C left behind use libraries that the end of the program takes down.
    atexit.register(_xccl.wait_for_the_rest)
except ImportError as _wrong:  # the command line, python -m xccl_synth, works without
    _missing = MissingModule(f"xccl_synth: {_wrong}")

    def __getattr__(name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise _missing


__all__ = [
    "Book",
    "Bound",
    "Collective",
    "Comparison",
    "ExpertPlan",
    "Failed",
    "Front",
    "Infeasible",
    "InternalError",
    "InvalidInput",
    "LimitReached",
    "MissingModule",
    "NcclBook",
    "NotThere",
    "PeerEnded",
    "Plan",
    "Program",
    "Schedule",
    "Stop",
    "Submachine",
    "Sweep",
    "SystemFailure",
    "Table",
    "Topology",
    "TopologyBuilder",
    "UsageError",
    "Violation",
    "WrongSchedule",
    "XcclError",
    "XcclWarning",
    "book",
    "bound",
    "collectives",
    "compare",
    "engines",
    "library",
    "pareto",
    "plan",
    "simulate",
    "sweep",
    "tune",
    "verify",
]
