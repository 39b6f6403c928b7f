"""Plans: made, read, timed, emitted, run."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Literal, Optional, Tuple, Union, overload

import numpy as np

from . import _xccl
from ._arguments import Long, PathLike, Progress, Size, Sizes, path_of, size_of, sizes_of
from ._border import border, border_class
from ._show import plan_html, plan_text, view_page
from ._collective import Collective, collective_of
from .errors import UsageError, Violation, warn
from ._experts import CALLS, ExpertPlan, plan_experts
from ._schedule import Schedule
from ._table import Column, Table
from ._topology import Machine, Topology, topology_of

_PS_PER_US = 1e6


@border_class
class Program:
    """The physical form of a plan: for every rank its threadblocks, and for each a list of instructions (docs/ir.md)."""

    __slots__ = ("_c",)

    def __init__(self, made: "_xccl.Program") -> None:
        self._c = made

    @property
    def num_ranks(self) -> int:
        """Ranks, idle ones too."""
        return self._c.num_ranks

    @property
    def protocol(self) -> str:
        """``simple``, ``ll`` or ``ll128``."""
        return self._c.protocol

    @property
    def slots(self) -> int:
        """Slots of every connection."""
        return self._c.slots

    @property
    def instances(self) -> int:
        """Copies of every threadblock."""
        return self._c.instances

    @property
    def segment_bytes(self) -> int:
        """Each pass moves so much of a chunk; 0: there is one pass."""
        return self._c.segment_bytes

    @property
    def in_place(self) -> bool:
        """Whether it is also right where input and output share memory."""
        return self._c.in_place

    @property
    def num_groups(self) -> int:
        """Groups of connections that one threadblock serves together."""
        return self._c.num_groups

    @property
    def instructions(self) -> Table:
        """One row an instruction: ``rank``, ``threadblock`` and ``index``, ``op``, ``count`` (chunks), ``src_buffer`` and
        ``src_slot``, ``dst_buffer`` and ``dst_slot``, and how many ``dependencies`` it waits for. ``op`` and the buffers are
        codes: see ``Table.codes``."""
        codes = {"op": _xccl.opcodes, "src_buffer": _xccl.buffers, "dst_buffer": _xccl.buffers}
        return Table(self._c.instructions(), codes)

    @property
    def threadblocks(self) -> Table:
        """One row a threadblock: ``rank``, ``threadblock``, ``channel``, ``send_peer`` and ``recv_peer`` (-1: none, or a group),
        ``instructions``."""
        return Table(self._c.threadblocks())

    @property
    def connections(self) -> Table:
        """One row a connection: ``src``, ``dst``, ``channel``."""
        return Table(self._c.connections())

    def __reduce__(self) -> Tuple[Any, ...]:
        return Program, (self._c,)

    def __repr__(self) -> str:
        return f"<Program of {self.num_ranks} ranks, {self.protocol}, {len(self.threadblocks)} threadblocks>"


@border_class
class Bound:
    """How fast any plan could be."""

    def __init__(self, facts: Dict[str, Any]) -> None:
        self.latency_ps: int = facts["latency_ps"]
        """For the farthest byte, at size zero."""
        self.bandwidth_ps: float = facts["bandwidth_ps"]
        """For the size, without latencies."""
        self.bound_ps: int = facts["bound_ps"]
        """The largest of both and of flows over time, which count both, rounded down."""
        self.kind: str = facts["kind"]
        """What gives the bound: ``flow-over-time``, or, for the bytes alone, cut, flow, lp, counting or relaxed."""
        self.size_bytes: int = facts["size_bytes"]
        """The real size, after rounding down."""

    @property
    def latency_us(self) -> float:
        """``latency_ps`` in microseconds."""
        return self.latency_ps / _PS_PER_US

    @property
    def bandwidth_us(self) -> float:
        """``bandwidth_ps`` in microseconds."""
        return self.bandwidth_ps / _PS_PER_US

    @property
    def bound_us(self) -> float:
        """``bound_ps`` in microseconds."""
        return self.bound_ps / _PS_PER_US

    @property
    def algbw_gb_per_s(self) -> float:
        """The size over the bound."""
        return self.size_bytes * 1e3 / self.bound_ps if self.bound_ps > 0 else 0.0

    def __repr__(self) -> str:
        return f"<Bound {_xccl.format_time(self.bound_ps)} by {self.kind}: latency {_xccl.format_time(self.latency_ps)}>"


@border_class
class Plan:
    """A collective planned on a machine: its schedule, its program, and what is known of them. It never changes.

    ``facts`` has the keys of ``xccl-synth plan --json``, with times in picoseconds, too. Times are those of ideal links, those of
    programs by the machine's model where there is one (``machine``).
    """

    __slots__ = ("_c", "_facts", "_schedule", "_asked", "interrupted")

    def __init__(self, made: "_xccl.Plan", interrupted: bool = False, asked: Optional[Dict[str, Any]] = None) -> None:
        self._c = made
        self._asked = asked  # the options that it was made with; None: not known
        self._facts: Optional[Dict[str, Any]] = None
        self._schedule: Optional[Schedule] = None
        self.interrupted = interrupted
        """Whether Ctrl-C ended the search: this is the best plan that it had found."""

    @staticmethod
    def load(path: PathLike) -> "Plan":
        """Reads a plan file and proves it. Raises InvalidInput with the place, or the first violation."""
        return Plan(_xccl.Plan.load(path_of(path)))

    @staticmethod
    def imported(
        path: PathLike,
        on: Optional[Machine] = None,
        *,
        collective: Optional[str] = None,
        root: Optional[int] = None,
        size: Size = "64MiB",
        machine: Optional[str] = None,
    ) -> "Plan":
        """Reads and proves a plan of another tool: MSCCL XML, MSCCL++ JSON, or the sends that SCCL, TACCL, ForestColl or TACOS
        print (docs/interchange.md). ``on``: the machine that it is put on (default: a full mesh of its ranks). ``collective`` and
        ``root``: where the file does not say them. What is lost is a warning (XcclWarning)."""
        options = options_of(size=size, machine=machine)
        place = None if on is None else topology_of(on)._c
        made, lost = _xccl.Plan.imported(path_of(path), collective, root, place, options)
        warn(lost)
        return Plan(made)

    def save(self, path: PathLike) -> None:
        """Writes a plan file: the bytes that ``xccl-synth plan -o`` writes."""
        self._c.save(path_of(path))

    @property
    def facts(self) -> Dict[str, Any]:
        """All that is known of the plan, by the keys of ``xccl-synth plan --json``."""
        if self._facts is None:
            facts = dict(self._c.facts())
            for name in ("time", "time_program", "latency", "bandwidth", "bound"):
                ps = facts[f"{name}_ps"]
                facts[f"{name}_us"] = None if ps is None else ps / _PS_PER_US
            self._facts = facts
        return dict(self._facts)

    def _fact(self, name: str) -> Any:
        if self._facts is None:
            return self.facts[name]
        return self._facts[name]

    @property
    def topology(self) -> Topology:
        """The machine."""
        return self.schedule.topology

    @property
    def collective(self) -> Collective:
        """The collective, cut into the chunks that the schedule moves."""
        return self.schedule.collective

    @property
    def schedule(self) -> Schedule:
        """The schedule."""
        if self._schedule is None:
            self._schedule = Schedule._of(self._c.schedule)
        return self._schedule

    @property
    def program(self) -> Optional[Program]:
        """The program; None where the schedule was not lowered."""
        return Program(_xccl.Program(self._c)) if self._c.has_program else None

    @property
    def engine(self) -> str:
        """The engine that made the plan."""
        return str(self._fact("engine"))

    @property
    def size_bytes(self) -> int:
        """The size that it is made for, after rounding down."""
        return int(self._fact("size_bytes"))

    @property
    def model(self) -> str:
        """The time model: pipelined or blocking."""
        return str(self._fact("model"))

    @property
    def machine(self) -> Optional[str]:
        """The source of the machine's model that the program is timed by; None: links alone."""
        machine: Optional[str] = self._fact("machine")
        return machine

    @property
    def time_ps(self) -> int:
        """The schedule's time on ideal links."""
        return int(self._fact("time_ps"))

    @property
    def time_us(self) -> float:
        """``time_ps`` in microseconds."""
        return float(self._fact("time_us"))

    @property
    def program_time_us(self) -> Optional[float]:
        """The program's time in microseconds; None without a program."""
        us: Optional[float] = self._fact("time_program_us")
        return us

    @property
    def algbw_gb_per_s(self) -> float:
        """The size over the time of the schedule."""
        return float(self._fact("algbw_gb_per_s"))

    @property
    def busbw_gb_per_s(self) -> float:
        """nccl-tests' bus bandwidth of the schedule."""
        return float(self._fact("busbw_gb_per_s"))

    @property
    def bound(self) -> Bound:
        """How fast any plan could be."""
        facts = self.facts
        return Bound({**facts, "kind": facts["bound_kind"]})

    @property
    def ratio(self) -> float:
        """The time of the program, or else of the schedule, over the bound."""
        return float(self._fact("ratio"))

    @property
    def exact(self) -> bool:
        """Whether no plan is better: it is proved, or the time equals the bound."""
        return bool(self._fact("exact"))

    @property
    def bitwise_same(self) -> Optional[bool]:
        """Whether all ranks end with the same bits of a sum."""
        same: Optional[bool] = self._fact("bitwise_same")
        return same

    @property
    def note(self) -> str:
        """The engine's line for people."""
        return str(self._fact("note"))

    @property
    def transfers(self) -> Table:
        """``schedule.transfers``."""
        return self.schedule.transfers

    def verify(self) -> List[Violation]:
        """Proves the plan again: what the verifier finds, which is nothing."""
        return [Violation(row) for row in self._c.violations()]

    def simulate(
        self,
        sizes: Optional[Sizes] = None,
        *,
        model: Optional[str] = None,
        level: str = "schedule",
        machine: Optional[str] = None,
    ) -> Table:
        """How long the plan takes at these sizes (default: its own), beside the bound.

        ``level``: "schedule", on ideal links, or "program", on ``machine`` (default: the one that it was made for; "none": links
        alone). Columns: ``engine``, ``made_by``, ``size_bytes``, ``time_us`` and ``time_ps``, ``algbw_gb_per_s``,
        ``busbw_gb_per_s``, ``bound_us`` and ``bound_ps``, ``ratio``.
        """
        if level not in ("schedule", "program"):
            raise UsageError(f"level: no level '{level}'; expected schedule or program")
        own = [self.size_bytes] if sizes is None else sizes_of("sizes", sizes)
        return Table(times(_xccl.simulate(self._c, own, model or "", level == "program", machine or "")))

    def link_load(self, size: Optional[Size] = None) -> Table:
        """How much each link carries of the schedule at a size (default: its own): ``link``, ``name``, ``busy_us``, and ``share``
        of the whole time. The busiest link bounds the plan."""
        time_ps, busy_ps = _xccl.link_load(self._c, self._size(size))
        links = self.topology.links
        return Table(
            {
                "link": np.arange(len(links)),
                "name": links["name"],
                "busy_us": busy_ps / _PS_PER_US,
                "share": busy_ps / time_ps if time_ps > 0 else np.zeros(len(busy_ps)),
            }
        )

    def moves(self, size: Optional[Size] = None) -> Table:
        """When each chunk of each transfer leaves its source and has arrived, at a size (default: its own): ``transfer``,
        ``chunk``, ``src``, ``dst``, ``step``, ``start_ps``, ``arrival_ps``. By the pipelined model, each chunk as a whole."""
        return Table(_xccl.moves(self._c, self._size(size)))

    def _size(self, size: Optional[Size]) -> int:
        return self.size_bytes if size is None else size_of("size", size)

    def emit(
        self,
        to: str,
        file: Optional[PathLike] = None,
        *,
        dtype: str = "float",
        redop: str = "sum",
        threads: int = 0,
        size: Optional[Size] = None,
        executor: str = "executor",
        in_place: bool = False,
        min_size: Size = 0,
        max_size: Size = 0,
        name: str = "xccl",
    ) -> Any:
        """The plan for compilers and other tools, or as a picture, as a text; ``file`` also writes it there.

        ``to``: "cuda" or "host" (``dtype``, ``redop`` and, for cuda, ``threads`` of a block: 0 for the usual number),
        "msccl-xml" (``executor``: executor, msccl or rccl), "mscclpp-json" (both: ``in_place``, and the sizes that the file is
        selected for, 0 for the plan's own), or "chakra": a list of bytes, one execution trace a rank at ``size``, and ``file`` is a
        prefix. These need a program.

        Pictures: "svg" (the schedule's steps on the machine, and a timeline of its links), "dot" (the machine, for Graphviz), and
        "perfetto" (every message and, with a program, every instruction of the simulation, for ui.perfetto.dev; times in
        microseconds). ``size``: bytes or "64MiB" that "chakra" and pictures show (default: the plan's own). Losses are warnings
        (XcclWarning).
        """
        if size is not None and to not in ("chakra", "svg", "perfetto"):
            raise UsageError("size: only for chakra, svg and perfetto; other formats serve all sizes")
        made: Union[str, List[bytes]]
        if to in ("cuda", "host"):
            made = _xccl.emit_source(self._c, to == "host", dtype, redop, threads, name)
        elif to == "msccl-xml":
            limits = (size_of("min_size", min_size), size_of("max_size", max_size))
            made = _warned(_xccl.emit_msccl(self._c, executor, name, in_place, *limits))
        elif to == "mscclpp-json":
            limits = (size_of("min_size", min_size), size_of("max_size", max_size))
            made = _warned(_xccl.emit_mscclpp(self._c, name, in_place, *limits))
        elif to == "chakra":
            made = _xccl.emit_chakra(self._c, self._size(size), name)
        elif to in ("svg", "dot", "perfetto"):
            made, note = _xccl.emit_drawing(self._c, to, self._size(size))
            warn([note] if note else [])
        else:
            formats = "cuda, host, chakra, msccl-xml, mscclpp-json, svg, dot or perfetto"
            raise UsageError(f"to: no format '{to}'; expected {formats}")
        if file is not None:
            _write(made, file)
        return made

    def view(self, file: Optional[PathLike] = None) -> str:
        """The page of ``xccl-synth view``: the machine, the schedule playing over it, timelines, who holds what. One HTML text that
        needs no network; ``file`` also writes it there. In a notebook a plan shows it by itself."""
        page = view_page(self)
        return written(page, file)

    def explain(self, *, time_limit: Optional[float] = None, progress: Optional[Progress] = None) -> str:
        """Why the plan takes as long as it does: the bound, the critical path, the plan of the next engine, and what a few changes to
        the machine or to the plan would gain. The text that ``xccl-synth plan --explain`` adds. ``time_limit``: seconds, after which
        changes are left out."""
        asked = None if self._asked is None else options_of(**self._asked)
        return self._c.explanation(asked, time_limit, _xccl.Watching(None, progress)).rstrip("\n")

    def run(
        self,
        sizes: Optional[Sizes] = None,
        *,
        backend: str = "cpu",
        dtype: str = "float",
        redop: str = "sum",
        iters: int = 20,
        warmup: int = 1,
        timeout: float = 30,
    ) -> Table:
        """Runs the program on a thread of this process for every rank, and checks every element.

        One row a size and mode: ``size_bytes``, ``count`` (elements), ``in_place``, ``time_us`` and ``slowest_us`` (of one
        operation, on this machine), ``algbw_gb_per_s``, ``busbw_gb_per_s``, ``predicted_us`` (simulated on the plan's links),
        ``wrong`` (elements), ``out_of_bounds``. ``timeout``: seconds without progress. Ctrl-C ends it after a size.
        """
        if backend != "cpu":
            raise UsageError(f"backend: '{backend}'; expected cpu; hint: xccl-synth run --backend cuda")
        own = [self.size_bytes] if sizes is None else sizes_of("sizes", sizes)
        watching = _xccl.Watching()
        return Table(_xccl.run(self._c, own, dtype, redop, iters, warmup, timeout, watching))

    def __reduce__(self) -> Tuple[Any, ...]:
        return Plan, (self._c, self.interrupted, self._asked)

    def __str__(self) -> str:
        return plan_text(self.facts)

    def __repr__(self) -> str:
        facts = self.facts
        return f"<Plan {facts['collective']} on {facts['topology']} by {facts['engine']}: {_xccl.format_time(self.time_ps)}>"

    def _repr_html_(self) -> str:
        return plan_html(self)


@border
def options_of(
    *,
    engine: str = "auto",
    size: Size = "64MiB",
    model: str = "pipelined",
    chunks: Optional[int] = None,
    steps: Optional[int] = None,
    rounds: Optional[int] = None,
    seed: Long = 0,
    allow_divergent: bool = False,
    machine: Optional[str] = None,
    max_ctas: Optional[int] = None,
    lower: bool = True,
    verify_passes: bool = False,
    relays: bool = True,
    time_limit: Optional[float] = None,
) -> "_xccl.PlanOptions":
    """The options as the stages take them; the defaults of ``plan``."""
    options = _xccl.PlanOptions()
    options.engine = engine
    options.size_bytes = size_of("size", size)
    options.model = model
    options.chunks, options.steps, options.rounds = chunks, steps, rounds
    options.seed = seed
    options.allow_divergent = allow_divergent
    options.machine = machine
    options.max_ctas = max_ctas
    options.lower = lower
    options.verify_passes = verify_passes
    options.relays = relays
    options.time_limit_s = time_limit
    return options


@overload
def plan(  # type: ignore
    topology: Machine,
    collective: Literal["dispatch", "combine"],
    *,
    experts: Optional[int] = None,
    top_k: Optional[int] = None,
    tokens: Optional[int] = None,
    row: Optional[Size] = None,
    routing: Optional[str] = None,
    aim: Optional[str] = None,
    draws: Optional[int] = None,
    seed: Long = 0,
    progress: Optional[Progress] = None,
    stop: "Optional[_xccl.Stop]" = None,
) -> ExpertPlan: ...


@overload
def plan(topology: Machine, collective: Union[str, Collective], **arguments: Any) -> Plan: ...


@border  # type: ignore[misc]
def plan(
    topology: Machine,
    collective: Union[str, Collective],
    *,
    size: Size = "64MiB",
    engine: str = "auto",
    ranks: Union[int, Iterable[int], None] = None,
    root: Optional[int] = None,
    counts: Any = None,
    pairs: Any = None,
    chunks: Optional[int] = None,
    steps: Optional[int] = None,
    rounds: Optional[int] = None,
    model: str = "pipelined",
    seed: Long = 0,
    allow_divergent: bool = False,
    machine: Optional[str] = None,
    max_ctas: Optional[int] = None,
    lower: bool = True,
    verify_passes: bool = False,
    relays: bool = True,
    start: Optional[Plan] = None,
    time_limit: Optional[float] = None,
    progress: Optional[Progress] = None,
    stop: "Optional[_xccl.Stop]" = None,
    experts: Optional[int] = None,
    top_k: Optional[int] = None,
    tokens: Optional[int] = None,
    row: Optional[Size] = None,
    routing: Optional[str] = None,
    aim: Optional[str] = None,
    draws: Optional[int] = None,
) -> Union[Plan, ExpertPlan]:
    """Plans a collective: searches, proves, predicts, and lowers the schedule to a program.

    ``topology``: a Topology or what it takes. ``collective``: a name with the arguments of Collective (``ranks``, ``root``,
    ``counts``, ``pairs``), or a Collective. ``size``: bytes or "64MiB", that the plan is made for. ``engine``: one of
    ``engines()``.

    ``chunks`` cuts every part into exactly so many, ``steps`` and ``rounds`` are limits, ``model`` is "pipelined" or "blocking".
    ``allow_divergent``: ranks may end with different roundings of one sum. ``relays=False``: ranks that take no part carry
    nothing. ``start``: a plan to start from; for this machine it is made no slower, for the machine as it was it is repaired.

    ``lower=False`` makes no program. ``machine``: the model that the program is made for and timed by: "ampere", "hopper",
    "blackwell", "gb300", "mi250x", "mi300x", a file of ``xccl-synth tune``, or "none" for links alone (default: that of the topology's GPUs, if known).
    ``max_ctas``: threadblocks of a rank at most. ``verify_passes``: proves every pass of lowering. ``time_limit``: seconds, of all
    together; without it limits are counted in work, so that the same arguments give the same plan.

    Other threads of Python run meanwhile. ``progress`` is called now and then with a text. Ctrl-C ends a search of ``auto``,
    ``greedy`` or ``smt`` with the best plan so far (``interrupted``); with other engines, and pressed again, it raises
    KeyboardInterrupt at once. ``stop``: a Stop that another thread may ask, with the same result. A stage that cannot be cut short is
    given up half a second after ``time_limit`` (LimitReached).

    "dispatch" and "combine" give an ExpertPlan: ``experts`` (default: 256), ``top_k`` (8), ``tokens`` of a rank at most (4096),
    ``row``, a token's row with its scales (7392; combine: 14336), ``routing`` ("uniform", "zipf:1.0", or a file), ``aim``
    ("throughput" or "latency"), ``draws``, the routings that it is timed on. ``seed``, ``progress`` and ``stop`` go with them, the
    others do not.

    Raises Infeasible where it is proved that there is none, LimitReached where a limit came first.
    """
    on = topology_of(topology)
    of_experts: Dict[str, Any] = dict(experts=experts, top_k=top_k, tokens=tokens, row=row, routing=routing, aim=aim, draws=draws)
    if isinstance(collective, str) and collective in CALLS:
        _refuse_others(
            collective, size=size, engine=engine, ranks=ranks, root=root, counts=counts, pairs=pairs, chunks=chunks, steps=steps,
            rounds=rounds, model=model, allow_divergent=allow_divergent, machine=machine, max_ctas=max_ctas, lower=lower,
            verify_passes=verify_passes, relays=relays, start=start, time_limit=time_limit,
        )
        return plan_experts(on, collective, _xccl.Watching(stop, progress), seed=seed, **of_experts)
    for name, value in of_experts.items():
        if value is not None:
            raise UsageError(f"{name}: only together with collective dispatch or combine")
    made = collective_of(collective, on.num_ranks, {"ranks": ranks, "root": root, "counts": counts, "pairs": pairs})
    watching = _xccl.Watching(stop, progress)
    asked: Dict[str, Any] = dict(
        engine=engine,
        size=size,
        model=model,
        chunks=chunks,
        steps=steps,
        rounds=rounds,
        seed=seed,
        allow_divergent=allow_divergent,
        machine=machine,
        max_ctas=max_ctas,
        lower=lower,
        verify_passes=verify_passes,
        relays=relays,
    )
    options = options_of(time_limit=time_limit, **asked)
    found = _xccl.Plan.make(on._c, made._c, options, None if start is None else start._c, watching)
    return Plan(found, watching.interrupted, asked)


def _refuse_others(collective: str, **arguments: Any) -> None:
    """Refuses arguments of ``plan`` that mean nothing for routes of experts and are not as they are when left out."""
    usual = dict(size="64MiB", engine="auto", model="pipelined", allow_divergent=False, lower=True, verify_passes=False, relays=True)
    for name, value in arguments.items():
        if not (value is usual.get(name) or (isinstance(value, str) and value == usual.get(name))):
            raise UsageError(f"{name}: not together with collective {collective}")


def plan_of_schedule(schedule: "_xccl.Schedule", name: str, options: Dict[str, Any]) -> Plan:
    progress = options.pop("progress", None)
    for searches in ("engine", "chunks", "steps", "rounds", "seed", "allow_divergent", "relays"):
        if searches in options:
            raise UsageError(f"{searches}: steers a search; a schedule that is there needs none")
    watching = _xccl.Watching(None, progress)
    return Plan(_xccl.Plan.of_schedule(schedule, name, options_of(**options), watching), watching.interrupted)


def times(columns: Dict[str, Any]) -> Dict[str, Any]:
    """The columns of times with microseconds before the exact picoseconds."""
    made: Dict[str, Any] = {}
    for name, column in columns.items():
        if name in ("time_ps", "bound_ps"):
            made[name.replace("_ps", "_us")] = column / _PS_PER_US
        else:
            made[name] = column
    made.update((name, columns[name]) for name in ("time_ps", "bound_ps") if name in columns)
    return made


def _warned(made: Tuple[str, str, List[str]]) -> str:
    text, _, lost = made
    warn(lost)
    return text


def written(text: str, file: Optional[PathLike]) -> str:
    """The text, which is in the file, too, where there is one."""
    if file is not None:
        _write(text, file)
    return text


def _write(made: Union[str, List[bytes]], file: PathLike) -> None:
    path = path_of(file, "file")
    texts = {path: made.encode()} if isinstance(made, str) else {path + b".%d.et" % rank: trace for rank, trace in enumerate(made)}
    for name, data in texts.items():
        _xccl.write_file(name, data)


__all__ = ["Bound", "Column", "Plan", "Program", "options_of", "plan", "plan_of_schedule", "times", "written"]
