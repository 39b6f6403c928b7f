"""Every error is an XcclError: a walk over all public functions, each argument with values that it cannot take."""

import inspect
import pathlib
import re
import tempfile
import unittest
import warnings

import numpy as np

import xccl_synth as xccl


def closed_file():
    file = tempfile.TemporaryFile()
    file.close()
    return file


WRONG = [
    None,
    True,
    1.5,
    -1,
    2**31,
    2**63,
    -(2**70),
    float("nan"),
    float("inf"),
    1j,
    "",
    "x",
    "\0",
    "\ud800",
    b"x",
    [],
    [1.5],
    [[]],
    [None],
    (1, 2, 3),
    {},
    {"x": 1},
    object(),
    closed_file(),
    np.array([0.5]),
    np.array(["x"]),
    np.float32(1.5),
    len,
]


class Calls:
    """A call of everything public that works, by name: the function and its arguments."""

    def __init__(self, folder):
        xml = folder / "ring.xml"
        self.machine = machine = xccl.Topology("ring:4")
        xml.write_text(machine.to_xml())
        self.collective = collective = xccl.Collective("allgather", 4)
        own = folder / "own.json"
        own.write_text('{"name": "own", "ranks": [0, 1], "part_sizes": [1], "pre": [{"rank": 0, "part": 0, "contributions": [0]}], "post": [{"rank": 1, "part": 0, "contributions": [0]}]}')
        ring = dict(engine="ring", size="1KiB", lower=True, machine="none")
        self.plan = plan = xccl.plan(machine, "allreduce", **ring)
        self.file = file = folder / "a.plan.json"
        plan.save(file)
        imported = folder / "msccl.xml"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plan.emit("msccl-xml", imported)
        self.table = table = machine.links
        program = plan.program
        self.book = folder / "book"
        out = folder / "out"
        experts = xccl.plan(machine, "dispatch", experts=8, top_k=2, tokens=4, row=64, draws=1)
        self.experts_file = experts_file = folder / "moe.plan.json"
        experts.save(experts_file)
        comparison = xccl.compare(machine, "allgather", "1KiB", engines=["ring"], machine="none")
        shown = dict(topology=machine, collective="allgather")
        members = dict(ranks=4, root=None, counts=None, pairs=None)
        options = dict(chunks=1, steps=None, rounds=None, model="pipelined", seed=0, allow_divergent=False)
        options.update(max_ctas=None, verify_passes=False, relays=True, time_limit=None, **ring)
        # A function that makes what the call works on, where calls change it.
        writer = lambda: xccl.Schedule(machine, "allgather")
        builder = lambda: self.builder()
        self.all = {
            "Topology": (xccl.Topology, dict(machine=str(xml), gpu_arch=None, gpus_per_switch=None, gpu_busids=None, pcie_gen=None, nic_rate=None, link=None, hosts=None, rails=None, fabric=None, nvlink_domain=None, host=[], hosts_file=None, job=None, plain_switches=False, without_links=[], degrades=[])),
            "Topology.from_xml": (xccl.Topology.from_xml, dict(xml=machine.to_xml(), name="a.xml")),
            "Topology.import_": (
                xccl.Topology.import_,
                dict(path=str(xml), gpu_arch=None, gpus_per_switch=None, gpu_busids=None, pcie_gen=None, nic_rate=None, link=None, hosts=None, rails=None, fabric=None, nvlink_domain=None, host=[], hosts_file=None, job=None, plain_switches=False),
            ),
            "Topology.to_xml": (machine.to_xml, {}),
            "Topology.to_svg": (machine.to_svg, {}),
            "Topology.to_dot": (machine.to_dot, {}),
            "Topology.neighbours": (machine.neighbours, dict(rank=0)),
            "Topology.without_link": (machine.without_link, ["0->1"]),
            "Topology.degrade": (machine.degrade, dict(link="0->1", factor=0.5)),
            "Topology.submachine": (machine.submachine, dict(ranks=[0, 1])),
            "Topology.fail_cables": (machine.fail_cables, dict(cables=1, seed=0)),
            "TopologyBuilder": (xccl.TopologyBuilder, dict(name="mine", source="", gpu_arch="")),
            "TopologyBuilder.gpu": (lambda **given: builder().gpu(**given), dict(id="7", host="h")),
            "TopologyBuilder.gpus": (lambda **given: builder().gpus(**given), dict(count=2, host="h")),
            "TopologyBuilder.switch": (lambda **given: builder().switch(**given), dict(id="s", host="h", multicast=False, reduce=False)),
            "TopologyBuilder.nic": (lambda **given: builder().nic(**given), dict(id="n", host="h")),
            "TopologyBuilder.cpu": (lambda **given: builder().cpu(**given), dict(id="c", host="h")),
            "TopologyBuilder.link": (self.linked, dict(source=0, target=1, bandwidth="1GB/s", latency=0, overhead=0, duplex=True)),
            "TopologyBuilder.build": (lambda: self.linked(source=0, target=1, bandwidth=1), {}),
            "Collective": (xccl.Collective, dict(kind="broadcast", ranks=4, root=0, counts=None, pairs=None, chunks=1)),
            "Collective.custom": (
                xccl.Collective.custom,
                dict(name="own", ranks=2, before=[(0, 0)], after=[(1, 0, [0])], weights=[1]),
            ),
            "Collective.from_file": (xccl.Collective.from_file, dict(path=own, num_ranks=4)),
            "Collective.with_chunks": (collective.with_chunks, dict(chunks=2)),
            "Collective.chunk": (collective.chunk, dict(part=0, index=0)),
            "Collective.before": (collective.before, dict(chunk=0)),
            "Collective.after": (collective.after, dict(chunk=0)),
            "Schedule": (xccl.Schedule, dict(topology=machine, collective="allgather", chunks=1, **members)),
            "Schedule.step": (lambda: writer().step(), {}),
            "Schedule.send": (lambda **given: self.moved("send", **given), dict(src=0, dst=1, chunk=0, count=1, path=None)),
            "Schedule.reduce": (lambda **given: self.moved("reduce", **given), dict(src=0, dst=1, chunk=0, count=1, path=None)),
            "Schedule.chunk": (plan.schedule.chunk, dict(part=0, index=0)),
            "Schedule.close": (plan.schedule.close, {}),
            "Schedule.path_columns": (plan.schedule.path_columns, {}),
            "Schedule.expanded": (plan.schedule.expanded, dict(most_transfers=100)),
            "Schedule.violations": (plan.schedule.violations, {}),
            "Schedule.to_pandas": (plan.schedule.to_pandas, {}),
            "Schedule.plan": (plan.schedule.plan, dict(name="own", size="1KiB", lower=False)),
            "Schedule.simulate": (plan.schedule.simulate, dict(sizes="1KiB", model="pipelined")),
            "Plan": None,  # made by plan
            "Plan.load": (xccl.Plan.load, dict(path=file)),
            "Plan.imported": (xccl.Plan.imported, dict(path=imported, on=machine, collective=None, root=None, size="1KiB", machine=None)),
            "Plan.save": (plan.save, dict(path=out)),
            "Plan.verify": (plan.verify, {}),
            "Plan.simulate": (plan.simulate, dict(sizes="1KiB", model=None, level="schedule", machine=None)),
            "Plan.link_load": (plan.link_load, dict(size="1KiB")),
            "Plan.moves": (plan.moves, dict(size="1KiB")),
            "Plan.emit": (
                plan.emit,
                dict(to="cuda", file=out, dtype="float", redop="sum", threads=0, executor="executor", in_place=False, min_size=0, max_size=0, name="x"),
            ),
            "Plan.view": (plan.view, dict(file=out)),
            "Plan.explain": (plan.explain, dict(time_limit=None, progress=None)),
            "Plan.run": (plan.run, dict(sizes="1KiB", backend="cpu", dtype="float", redop="sum", iters=1, warmup=0, timeout=30)),
            "ExpertPlan": None,  # plan makes it
            "ExpertPlan.load": (xccl.ExpertPlan.load, dict(path=experts_file)),
            "ExpertPlan.save": (experts.save, dict(path=out)),
            "ExpertPlan.verify": (experts.verify, {}),
            "ExpertPlan.simulate": (experts.simulate, dict(routing="uniform", draws=1)),
            "ExpertPlan.run": (experts.run, dict(routing="uniform", tokens=2, dtype="half", iters=1, timeout=30)),
            "ExpertPlan.to_svg": (experts.to_svg, dict(file=out)),
            "ExpertPlan.view": (experts.view, dict(file=out)),
            "Program": None,  # part of a plan
            "Bound": None,
            "Front.fastest": (xccl.pareto(machine, "allgather", size="1KiB", chunks=1, steps=3).fastest, {}),
            "Comparison.best": (comparison.best, {}),
            "Comparison.plan": (comparison.plan, dict(engine="ring", size="1KiB")),
            "Comparison.explain": (comparison.explain, dict(engine="ring", size="1KiB", time_limit=None, progress=None)),
            "Comparison.view": (comparison.view, dict(file=out)),
            "Comparison.to_svg": (comparison.to_svg, dict(file=out)),
            "Table": (xccl.Table, dict(columns={"a": [1]}, codes=None)),
            "Table.keys": (table.keys, {}),
            "Table.row": (table.row, dict(index=0)),
            "Table.rows": (table.rows, {}),
            "Table.where": (table.where, dict(keep=[0])),
            "Table.sorted_by": (table.sorted_by, dict(name="name")),
            "Table.to_pandas": (table.to_pandas, {}),
            "Book.plan": None,  # tune_test
            "plan": (xccl.plan, dict(**shown, **members, **options, start=None, progress=None, stop=None)),
            "bound": (xccl.bound, dict(**shown, size="1KiB", **members, model="pipelined")),
            "verify": (xccl.verify, dict(what=file)),
            "simulate": (xccl.simulate, dict(what=file, sizes="1KiB", model=None, level="schedule", machine=None)),
            "compare": (xccl.compare, dict(**shown, sizes="1KiB", engines=["ring"], others=None, **members, progress=None, machine="none")),
            "sweep": (xccl.sweep, dict(topologies=machine, collectives="allgather", sizes="1KiB", engines="ring", jobs=1, progress=None, keep=None)),
            "pareto": (xccl.pareto, dict(**shown, **members, progress=None, stop=None, size="1KiB", chunks=1, steps=3)),
            "tune": (xccl.tune, dict(topology="ring:2", path=self.book, collectives="allgather", sizes="1KiB", roots=0, iters=1, progress=None, engine="ring")),
            "book": (
                xccl.book,
                dict(topology="dgx-h100", path=self.book, collectives="allgather", sizes="64KiB", roots=0, least_gain=1.1, tests=[], progress=None, engine="ring"),
            ),
            "engines": (xccl.engines, {}),
            "collectives": (xccl.collectives, {}),
            "library": (xccl.library, {}),
        }

    def builder(self):
        made = xccl.TopologyBuilder("mine")
        made.gpus(2, host="h")
        return made

    def linked(self, **given):
        made = self.builder()
        made.link(**given)
        return made.build()

    def moved(self, how, **given):
        """The schedule is wrong where numbers are; to say so is the verifier's."""
        written = xccl.Schedule(self.machine, "allreduce")
        getattr(written, how)(**given)
        return written.violations()


def everything():
    """The names of all that is public and is called."""
    for name in xccl.__all__:
        value = getattr(xccl, name)
        if inspect.isclass(value):
            if issubclass(value, (BaseException, xccl.Violation)) or value is xccl.Stop or issubclass(value, tuple):
                continue
            if value.__init__ is not object.__init__ and "__init__" in vars(value) and value.__name__ not in ("Comparison", "Sweep", "Front", "Book", "NcclBook"):
                yield name
            for member, what in vars(value).items():
                if not member.startswith("_") and (inspect.isfunction(what) or isinstance(what, staticmethod)):
                    yield f"{name}.{member}"
        else:
            yield name


class Walk(unittest.TestCase):
    def tried(self, name, call, given):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                call(*given) if isinstance(given, list) else call(**given)
            except xccl.XcclError as wrong:
                self.assertNotIsInstance(wrong, xccl.InternalError, str(wrong))
                return wrong
        return None

    def test_all_functions(self):
        with tempfile.TemporaryDirectory() as folder:
            calls = Calls(pathlib.Path(folder))
            self.assertEqual(set(everything()) - set(calls.all), set())
            for name, case in calls.all.items():
                if case is None:
                    continue
                call, given = case
                self.assertIsNone(self.tried(name, call, given), name)
                refused = 0
                for argument in range(len(given)) if isinstance(given, list) else given:
                    for value in WRONG:
                        if value is len and argument in ("progress", "keep"):
                            continue  # a function; what it raises is the caller's
                        if name in ("tune", "Plan.run") and argument == "sizes" and isinstance(value, int) and value == 2**31:
                            continue  # 2 GiB is a right size, and running it takes three times as much on each pair of ranks
                        if value is None and not isinstance(given, list) and given[argument] is None:
                            continue
                        with self.subTest(f"{name}: {argument}={value!r}"):
                            changed = given.copy()
                            changed[argument] = value
                            refused += self.tried(name, call, changed) is not None
                if given:
                    self.assertGreater(refused, len(given) * len(WRONG) // 2, name)
                with self.subTest(f"{name}: an argument that it does not have"):
                    if not isinstance(given, list) and not name.startswith(("TopologyBuilder.", "Schedule.s", "Schedule.r")):
                        self.assertIsInstance(self.tried(name, call, {**given, "no_such_argument": 1}), xccl.UsageError)


class Texts(unittest.TestCase):
    def test_what_they_say(self):
        machine = xccl.Topology("ring:4")
        written = xccl.Schedule(machine, "allgather")
        several = "expected one rank, or an array; a list is a multicast's dst or a sum's src"
        for text, call in (
            ("size: 1.5; expected whole bytes, or a text such as 64MiB", lambda: xccl.plan(machine, "allgather", size=1.5)),
            ("sizes: 1.5; expected whole bytes, or a text such as 64MiB", lambda: xccl.compare(machine, "allgather", [1.5])),
            ("size: True; expected whole bytes, or a text such as 64MiB", lambda: xccl.bound(machine, "allgather", True)),
            (f"src: [0, 1]; {several}", lambda: written.send([0, 1], 1, 0)),
            (f"dst: [0, 1]; {several}", lambda: written.reduce(1, [0, 1], 0)),
            ("chunk: [0]; expected one chunk, or an array of them", lambda: written.send(0, 1, [0])),
            ("src: an array of float64; expected whole numbers of 32 bits", lambda: written.send(np.array([0.0]), 1, 0)),
            ("collective: missing; plan needs it", lambda: xccl.plan(machine)),
            ("plan: 3 arguments by place; expected at most 2", lambda: xccl.plan(machine, "allgather", "1KiB")),
            ("sise: no such argument of plan; did you mean 'size'?", lambda: xccl.plan(machine, "allgather", sise=1)),
            ("chunks: 2.0; expected a whole number", lambda: xccl.plan(machine, "allgather", chunks=2.0)),
            ("chunks: 2147483648; expected a whole number from -2^31 to 2^31 - 1", lambda: xccl.plan(machine, "allgather", chunks=2**31)),
            ("ranks: [0, 0.5]; expected a list with a whole number in each place, not 0.5", lambda: machine.submachine([0, 0.5])),
            ("without_links: '0->1'; expected a list with a text in each place", lambda: xccl.Topology("ring:4", without_links="0->1")),
            ("lower: 1; expected True or False", lambda: xccl.plan(machine, "allgather", lower=1)),
            ("no column 'speed'; columns are a, b", lambda: xccl.Table({"a": [1], "b": [2]})["speed"]),
            ("index: no row 1; rows are 0..0", lambda: xccl.Table({"a": [1]}).row(1)),
        ):
            with self.subTest(text):
                with self.assertRaises(xccl.XcclError) as raised:
                    call()
                self.assertEqual(str(raised.exception), text)

    def test_numbers_of_numpy_are_numbers(self):
        plan = xccl.plan("ring:4", "allgather", size=np.int64(1024), engine="ring", chunks=np.int32(1), lower=np.bool_(False))
        self.assertEqual(plan.size_bytes, 1024)

    def test_what_else_they_are(self):
        with self.assertRaises(TypeError):
            xccl.plan("ring:4", "allgather", chunks="1")
        with self.assertRaises(KeyError):
            xccl.Table({"a": [1]})["b"]
        with self.assertRaises(IndexError):
            xccl.Table({"a": [1]}).row(3)
        self.assertTrue(issubclass(xccl.MissingModule, ImportError))
        self.assertTrue(re.match("no column 'b'", str(xccl.NotThere("no column 'b'"))))
