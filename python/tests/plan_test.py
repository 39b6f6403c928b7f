"""Plans: what is known of them, files, programs, times, other formats, runs."""

import json
import pathlib
import resource
import tempfile
import unittest
import warnings

import numpy as np

import xccl_synth as xccl


class Planning(unittest.TestCase):
    def test_facts(self):
        plan = xccl.plan("ring:4", "allgather", size="1MiB")
        self.assertEqual(plan.size_bytes, 1 << 20)
        self.assertEqual(plan.time_us, plan.time_ps / 1e6)
        self.assertGreaterEqual(plan.ratio, 1)
        self.assertGreaterEqual(plan.time_ps, plan.bound.bound_ps)
        self.assertEqual(plan.verify(), [])
        self.assertEqual(xccl.verify(plan), [])
        self.assertFalse(plan.interrupted)
        self.assertIn("allgather on ring:4: 4 ranks, 1MiB, pipelined model", str(plan))
        self.assertTrue(plan._repr_html_().startswith("<iframe srcdoc=\"&lt;!"), plan._repr_html_()[:40])

    def test_the_same_arguments_give_the_same_plan(self):
        one, two = (xccl.plan("torus:4x4", "allreduce", size="1MiB") for _ in range(2))
        for name in one.transfers:
            self.assertTrue(np.array_equal(one.transfers[name], two.transfers[name]), name)

    def test_arguments(self):
        plan = xccl.plan("nvswitch:8", "broadcast", size=1 << 16, root=3, ranks=[1, 3, 5], engine="tree", lower=False)
        self.assertEqual(plan.engine, "tree")
        self.assertEqual(plan.collective.ranks.tolist(), [1, 3, 5])
        self.assertEqual(plan.collective.root, 3)
        self.assertIsNone(plan.program)
        pairs = xccl.plan("ring:4", "sendrecv", pairs=[(0, 1), (2, 3)], size="1KiB")
        self.assertEqual(pairs.transfers["src"].tolist(), [0, 2])
        counts = np.arange(16).reshape(4, 4)
        self.assertEqual(xccl.plan("full-mesh:4", "alltoallv", counts=counts, size="1MiB").collective.num_parts, 16)

    def test_relays(self):
        ring = xccl.Topology("ring:4")
        self.assertEqual(xccl.plan(ring, "allgather", ranks=[0, 2], size="1MiB").facts["relays"], [1, 3])
        with self.assertRaises(xccl.XcclError) as raised:
            xccl.plan(ring, "allgather", ranks=[0, 2], size="1MiB", relays=False)
        self.assertTrue(str(raised.exception).endswith("hint: without --no-relays"), str(raised.exception))

    def test_start_repairs(self):
        torus = xccl.Topology("torus:4x4")
        plan = xccl.plan(torus, "allgather", size="1MiB")
        repaired = xccl.plan(torus.without_link("0<->1"), "allgather", size="1MiB", start=plan)
        self.assertEqual(repaired.topology.num_links, 62)
        self.assertEqual(repaired.verify(), [])

    def test_progress_is_told(self):
        said = []
        xccl.compare("ring:4", "allgather", ["1KiB", "1MiB"], engines=["ring"], progress=said.append)
        self.assertEqual(said, ["1KiB compared", "1MiB compared"])

    def test_an_exception_of_progress_ends_the_call(self):
        def fail(_):
            raise RuntimeError("from progress")

        with self.assertRaisesRegex(RuntimeError, "from progress"):
            xccl.compare("ring:4", "allgather", ["1KiB", "1MiB"], engines=["ring"], progress=fail)


class Fronts(unittest.TestCase):
    def test_points_and_plans(self):
        front = xccl.pareto("dgx1", "allgather", size="1MiB")
        self.assertEqual(front["steps"].tolist(), [2, 3])
        self.assertEqual(front["cost"].tolist(), ["3/2", "7/6"])
        self.assertEqual((front.complete, front.stopped, front.interrupted), (True, "", False))
        for row, plan in zip(front.rows(), front.plans):
            self.assertEqual(plan.verify(), [])
            self.assertEqual((row["steps"], row["rounds"]), (plan.facts["steps"], plan.facts["rounds"]))
            self.assertEqual((row["chunks"], row["time_ps"]), (plan.facts["chunks_per_rank"], plan.time_ps))
            self.assertIsNone(plan.program)
        self.assertIs(front.fastest(), front.plans[1])
        self.assertEqual(repr(front), "<Front of 2 points, complete>")

    def test_limits(self):
        short = xccl.pareto("dgx1", "allgather", size="1MiB", steps=2, lower=True)
        self.assertEqual((short["steps"].tolist(), short.complete, short.stopped), ([2], False, "--steps=2"))
        self.assertEqual(short.plans[0].program.num_ranks, 8)
        with self.assertRaisesRegex(xccl.UsageError, "^engine: not for a front"):
            xccl.pareto("ring:4", "allgather", engine="ring")


class Files(unittest.TestCase):
    def test_save_and_load(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.plan.json"
            plan = xccl.plan("nvswitch:4", "allreduce", size="1MiB")
            plan.save(path)
            read = xccl.Plan.load(path)
            varying = ("synthesis_s", "note", "loss", "no_program", "limits")
            facts = {name: value for name, value in plan.facts.items() if name not in varying}
            self.assertEqual(facts, {name: value for name, value in read.facts.items() if name not in varying})
            again = pathlib.Path(folder) / "b.plan.json"
            read.save(again)
            self.assertEqual(path.read_bytes(), again.read_bytes())
            self.assertEqual(xccl.verify(path), [])
            self.assertEqual(xccl.simulate(path, "1MiB")["time_ps"].tolist(), [plan.time_ps])

    def test_other_tools(self):
        plan = xccl.plan("nvswitch:4", "allreduce", engine="ring", size="1MiB", machine="none")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "ring.xml"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", xccl.XcclWarning)
                plan.emit("msccl-xml", file)
            back = xccl.Plan.imported(file, on=plan.topology, size="1MiB")
            self.assertEqual(back.collective.name, "allreduce")
            self.assertEqual(back.simulate("1MiB")["time_ps"].tolist(), [plan.time_ps])
            self.assertEqual(xccl.Plan.imported(file).topology.name, "full-mesh:4")
            file.write_text("nothing")
            with self.assertRaisesRegex(xccl.InvalidInput, "ring.xml"):
                xccl.Plan.imported(file)

    def test_a_wrong_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.plan.json"
            xccl.plan("ring:4", "allgather", size="1MiB", engine="ring", chunks=2, lower=False).save(path)
            text = path.read_text()
            at = text.index('"dst":[') + len('"dst":[')
            wrong = text[:at] + str((int(text[at]) + 2) % 4) + text[at + 1 :]
            self.assertNotEqual(wrong, text)
            path.write_text(wrong)
            violations = xccl.verify(path)
            self.assertEqual(violations[0].rule, "S2")
            with self.assertRaises(xccl.InvalidInput) as raised:
                xccl.Plan.load(path)
            self.assertTrue(str(raised.exception).startswith(f"{path}: {violations[0]}"), str(raised.exception))
            with self.assertRaises(xccl.InvalidInput):
                xccl.Plan.load(pathlib.Path(folder) / "none.plan.json")


class Programs(unittest.TestCase):
    def setUp(self):
        self.plan = xccl.plan("nvswitch:4", "allreduce", engine="ring", size="1MiB")

    def test_columns(self):
        program = self.plan.program
        instructions = program.instructions
        self.assertEqual(program.num_ranks, 4)
        self.assertEqual(len(instructions), program.threadblocks["instructions"].sum())
        self.assertEqual(instructions.codes["op"][0], "send")
        self.assertIn(instructions.row(0)["op"], instructions.codes["op"])
        self.assertEqual(set(zip(program.connections["src"], program.connections["dst"])), {(r, (r + way) % 4) for r in range(4) for way in (1, 3)})
        self.assertEqual(str(instructions.to_pandas()["op"].dtype), "category")

    def test_simulate(self):
        times = self.plan.simulate("1KiB:1MiB:x32")
        self.assertEqual(times["size_bytes"].tolist(), [1 << 10, 1 << 15, 1 << 20])
        self.assertEqual(times["time_ps"][2], self.plan.time_ps)
        self.assertTrue((times["ratio"] >= 1).all())
        program = self.plan.simulate(level="program")
        self.assertEqual(program["time_us"][0], self.plan.program_time_us)
        blocking = self.plan.simulate(model="blocking")
        self.assertNotEqual(blocking["time_ps"][0], self.plan.time_ps)

    def test_link_load_and_moves(self):
        load = self.plan.link_load()
        self.assertEqual(len(load), self.plan.topology.num_links)
        self.assertTrue((load["share"] <= 1).all())
        self.assertGreater(load["share"].max(), 0.4)
        moves = self.plan.moves("1MiB")
        self.assertEqual(len(moves), self.plan.transfers["count"].sum())
        self.assertTrue((moves["start_ps"] < moves["arrival_ps"]).all())

    def test_emit(self):
        self.assertIn("xccl", self.plan.emit("cuda"))
        self.assertIn("HostKernel", self.plan.emit("host"))
        traces = self.plan.emit("chakra", size="1MiB")
        self.assertEqual(len(traces), 4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", xccl.XcclWarning)
            self.assertTrue(self.plan.emit("msccl-xml", name="mine").startswith("<algo"))
            self.assertIn('"mine-', self.plan.emit("mscclpp-json", name="mine"))
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "a.cu"
            self.assertEqual(self.plan.emit("cuda", file), file.read_text())
            self.plan.emit("chakra", pathlib.Path(folder) / "t")
            self.assertTrue((pathlib.Path(folder) / "t.3.et").exists())
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "a.cu"
            file.write_text("old")
            soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
            try:
                with self.assertRaisesRegex(xccl.InvalidInput, "a.cu: cannot write: File too large"):
                    self.plan.emit("cuda", file)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            self.assertEqual([(path.name, path.read_text()) for path in pathlib.Path(folder).iterdir()], [("a.cu", "old")])
            with self.assertRaisesRegex(xccl.InvalidInput, "a.cu/b.cu: cannot write: Not a directory"):
                self.plan.emit("cuda", file / "b.cu")
            (pathlib.Path(folder) / "link.cu").symlink_to(file)
            self.plan.emit("cuda", pathlib.Path(folder) / "link.cu")
            self.assertEqual(file.read_text(), self.plan.emit("cuda"))
            none = pathlib.Path(folder) / "none" / "a.dot"
            with self.assertRaises(xccl.InvalidInput) as raised:
                self.plan.emit("dot", none)
            self.assertEqual(str(raised.exception), f"{none}: cannot write: No such file or directory")
            self.assertEqual(sorted(path.name for path in pathlib.Path(folder).rglob("*")), ["a.cu", "link.cu"])

    def test_pictures(self):
        svg = self.plan.emit("svg", size="64KiB")
        self.assertTrue(svg.startswith("<svg "), svg[:20])
        self.assertIn("allreduce of 64KiB on nvswitch:4, by ring", svg)
        self.assertIn("allreduce of 1MiB", self.plan.emit("svg"))
        self.assertTrue(self.plan.emit("dot").startswith('digraph "nvswitch:4" {'))
        events = json.loads(self.plan.emit("perfetto"))["traceEvents"]
        ends = [event["ts"] + event["dur"] for event in events if event["ph"] == "X"]
        self.assertAlmostEqual(max(ends), self.plan.program_time_us, places=2)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "a.svg"
            self.assertEqual(self.plan.emit("svg", file), file.read_text())
        for arguments, said in (
            (dict(to="dot", size="1KiB"), "size: only for chakra, svg and perfetto; other formats serve all sizes"),
            (dict(to="svgs"), "to: no format 'svgs'; expected cuda, host, chakra, msccl-xml, mscclpp-json, svg, dot or perfetto"),
            (dict(to="svg", size=3), "size: 3 bytes; allreduce of 4 ranks rounds them down to none; expected at least 4"),
        ):
            with self.assertRaises(xccl.UsageError) as raised:
                self.plan.emit(**arguments)
            self.assertEqual(str(raised.exception), said)

    def test_view(self):
        page = self.plan.view()
        self.assertIn("allreduce on nvswitch:4", page)
        self.assertNotIn("@XCCL_DATA@", page)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "a.html"
            self.assertEqual(self.plan.view(file), file.read_text())

    def test_run(self):
        rows = self.plan.run("4KiB,64KiB", iters=2)
        self.assertEqual(rows["size_bytes"].tolist(), [4096, 4096, 65536, 65536])
        self.assertEqual(rows["in_place"].tolist(), [False, True, False, True])
        self.assertEqual(rows["wrong"].sum(), 0)
        self.assertEqual(rows["out_of_bounds"].sum(), 0)


class Comparing(unittest.TestCase):
    def test_rows(self):
        mine = xccl.plan("ring:4", "allgather", engine="ring", size="1MiB")
        compared = xccl.compare("ring:4", "allgather", ["1KiB", "1MiB"], engines=["ring", "bfb"], others={"mine": mine})
        self.assertEqual(compared.title, "allgather on ring:4: 4 ranks, pipelined model")
        self.assertEqual(sorted(set(compared["engine"].tolist())), ["bfb", "mine", "ring"])
        self.assertEqual(compared.best()["size_bytes"].tolist(), [1 << 10, 1 << 20])
        at = compared.where((compared["engine"] == "mine") & (compared["size_bytes"] == 1 << 20))
        self.assertEqual(at["time_ps"].tolist(), [mine.time_ps])

    def test_what_is_left_out_says_why(self):
        compared = xccl.compare("ring:4", "alltoall", "1MiB", engines=["direct", "ring"])
        self.assertEqual(set(compared["engine"].tolist()), {"direct"})
        self.assertEqual(len(compared.left_out), 1)
        with self.assertRaises(xccl.InvalidInput):
            xccl.compare("ring:4", "alltoall", "1MiB", engines=["ring"])

    def test_pictures(self):
        compared = xccl.compare("ring:4", "allgather", ["1KiB", "1MiB"], engines=["ring", "bfb"], machine="none")
        page = compared.view()
        self.assertTrue('"collective":"allgather"' in page and "@XCCL_DATA@" not in page, page[-1000:])
        self.assertTrue(compared._repr_html_().startswith("<iframe srcdoc="))
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "a.html"
            self.assertEqual(compared.view(file), file.read_text())
            file = pathlib.Path(folder) / "a.svg"
            self.assertEqual(compared.to_svg(file), file.read_text())
            self.assertTrue(file.read_text().startswith("<svg "))

    def test_rows_are_planned_again_and_explained(self):
        mine = xccl.plan("ring:4", "allgather", engine="ring", size="1MiB")
        compared = xccl.compare("ring:4", "allgather", ["1KiB", "1MiB"], engines=["ring", "bfb"], others={"mine": mine}, chunks=2)
        again = compared.plan("bfb", "1KiB")
        row = compared.where((compared["engine"] == "bfb") & (compared["size_bytes"] == 1024))
        self.assertEqual((again.engine, again.time_ps), ("bfb", row["time_ps"][0]))
        self.assertIs(compared.plan("mine"), mine)
        self.assertEqual(compared.explain("bfb", "1KiB"), again.explain())
        self.assertTrue(again.explain().startswith("why\n  bound      no plan is faster than "), again.explain())
        for arguments in (("tree",), ("ring", "2KiB")):
            with self.assertRaisesRegex(xccl.UsageError, "no such row; the fastest are [a-z]+ at 1KiB, [a-z]+ at 1MiB$"):
                compared.plan(*arguments)

    def test_others_are_for_what_is_compared(self):
        mine = xccl.plan("ring:4", "allgather", engine="ring", size="1MiB")
        with self.assertRaisesRegex(xccl.InvalidInput, "^others: mine is allgather on ring:4; expected what is compared"):
            xccl.compare("ring:4", "allreduce", "1MiB", others={"mine": mine})

    def test_bound(self):
        bound = xccl.bound("dgx1", "allgather", "1GiB")
        plan = xccl.plan("dgx1", "allgather", size="1GiB", lower=False)
        self.assertEqual(bound.bound_ps, plan.bound.bound_ps)
        self.assertEqual(bound.kind, plan.bound.kind)

    def test_sweep(self):
        kept = []
        table = xccl.sweep(
            ["ring:4", "full-mesh:4"],
            ["allgather", "alltoall"],
            ["1KiB", "1MiB"],
            ["auto", "ring"],
            jobs=2,
            keep=lambda row, plan: kept.append((row["engine"], plan.time_us)),
        )
        self.assertEqual(len(table), 16)
        self.assertEqual(table["topology"].tolist(), ["ring:4"] * 8 + ["full-mesh:4"] * 8)
        ok = table.where(table["status"] == "ok")
        self.assertEqual(len(ok), 12)
        self.assertEqual(len(kept), 12)
        self.assertEqual(set(table.where(table["status"] == "error")["collective"].tolist()), {"alltoall"})
        self.assertTrue((ok["ratio"] >= 1).all())
        with self.assertRaisesRegex(xccl.UsageError, "^speed: no such argument of plan; did you mean 'seed'[?]$"):
            xccl.sweep("ring:4", speed=3)


class Errors(unittest.TestCase):
    def check(self, cases):
        for error, text, call, *given in cases:
            named = given.pop() if given and isinstance(given[-1], dict) else {}
            with self.subTest(text):
                with self.assertRaises(error) as raised:
                    call(*given, **named)
                self.assertIs(type(raised.exception), error)
                self.assertEqual(str(raised.exception), text)

    def test_of_plan(self):
        def ring(**options):
            return xccl.plan("ring:4", options.pop("collective", "allgather"), **options)

        machines = "expected ampere, b200, blackwell, gb300, hopper, mi250x, mi300x, none, a machine.json or a plan book"
        usage, wrong = xccl.UsageError, xccl.InvalidInput
        self.check(
            [
                (usage, "engine: no engine 'rings'; did you mean 'ring'?", ring, dict(engine="rings")),
                (usage, "collective: no collective 'allreduse'; did you mean 'allreduce'?", ring, dict(collective="allreduse")),
                (usage, "size: 3 bytes; allgather of 4 ranks rounds them down to none; expected at least 64", ring, dict(size=3)),
                (usage, "size: -1; expected whole bytes, or a text such as 64MiB", ring, dict(size=-1)),
                (usage, "size: 2048TiB; at most 1024TiB is supported", ring, dict(size=1 << 51)),
                (usage, "chunks: 0; expected 1 to 1048576", ring, dict(chunks=0)),
                (usage, "steps: 0; expected 1 to 1048576", ring, dict(steps=0)),
                (usage, "max_ctas: 0; expected at least 1", ring, dict(max_ctas=0)),
                (usage, "seed: -1; expected a whole number from 0 to 2^63 - 1", ring, dict(seed=-1)),
                (usage, "time_limit: -1; expected seconds", ring, dict(time_limit=-1)),
                (usage, "model: no time model 'fast'; expected pipelined or blocking", ring, dict(model="fast")),
                (usage, f"machine: no machine 'hoper'; did you mean 'hopper'?; {machines}", ring, dict(machine="hoper")),
                (wrong, "./none.json: cannot read: No such file or directory", ring, dict(machine="./none.json")),
                (wrong, "allgather: takes no root", ring, dict(root=1)),
                (usage, "ranks: no rank 9; ranks are 0..3", ring, dict(ranks=[0, 9])),
                (usage, "sendrecv: no pairs; hint: pairs=[(0, 1), (1, 0)]", ring, dict(collective="sendrecv")),
                (usage, "alltoallv: no counts; hint: counts=[...]", ring, dict(collective="alltoallv")),
                (
                    usage,
                    "root: not together with a Collective, which has its own",
                    ring,
                    dict(collective=xccl.Collective("broadcast", 4), root=1),
                ),
            ]
        )

    def test_of_what_has_a_plan(self):
        plan = xccl.plan("nvswitch:4", "allreduce", engine="ring", size="1MiB")
        bare = xccl.plan("nvswitch:4", "allreduce", size="1MiB", lower=False)
        usage, wrong = xccl.UsageError, xccl.InvalidInput
        self.check(
            [
                (usage, "level: no level 'link'; expected schedule or program", plan.simulate, dict(level="link")),
                (wrong, 'level: no program in the plan; hint: level="schedule"', bare.simulate, dict(level="program")),
                (usage, 'machine: only programs run on machines; hint: level="program"', plan.simulate, dict(machine="hopper")),
                (
                    usage,
                    "sizes: '1MB1': unknown unit 'MB1'; did you mean 'MB'?; a size is written like 64MiB",
                    plan.simulate,
                    "1MB1",
                ),
                (usage, "to: no format 'hip'; expected cuda, host, chakra, msccl-xml, mscclpp-json, svg, dot or perfetto", plan.emit, "hip"),
                (usage, "threads: 33; expected a multiple of 32 up to 1024", plan.emit, "cuda", dict(threads=33)),
                (wrong, "no program in the plan; hint: plan with lower=True", bare.emit, "cuda"),
                (wrong, "no program in the plan; hint: plan with lower=True", bare.run),
                (usage, "backend: 'cuda'; expected cpu; hint: xccl-synth run --backend cuda", plan.run, dict(backend="cuda")),
                (usage, "iters, warmup: 0, 1; expected at least 1 and 0", plan.run, dict(iters=0)),
                (usage, "timeout: 0; expected more than 0", plan.run, dict(timeout=0)),
                (usage, "dtype: no data type 'flot'; did you mean 'float'?", plan.run, dict(dtype="flot")),
                (usage, "jobs: 0; expected at least 1", xccl.sweep, "ring:4", dict(jobs=0)),
                (
                    wrong,
                    "others: mine has no program; hint: lower=True",
                    xccl.compare,
                    "nvswitch:4",
                    "allreduce",
                    "1MiB",
                    dict(others={"mine": bare}, machine="hopper"),
                ),
                (usage, "ranks: no rank 4; ranks are 0..3", xccl.bound, "ring:4", xccl.Collective("allgather", 8)),
            ]
        )

    def test_kinds(self):
        self.assertTrue(issubclass(xccl.InvalidInput, ValueError))
        with self.assertRaises(xccl.Infeasible) as raised:
            xccl.plan("ring:4", "allgather", engine="smt", chunks=1, steps=1, size="1MiB")
        self.assertEqual(raised.exception.exit_code, 3)
        self.assertIn("hint: --steps=2", str(raised.exception))
        with self.assertRaises(xccl.LimitReached):
            xccl.plan("torus:8x8", "allgather", time_limit=0)
        one_way = xccl.TopologyBuilder("one way")
        one_way.gpus(2)
        one_way.link(0, 1, bandwidth="1GB/s", duplex=False)
        with self.assertRaises(xccl.Infeasible):
            xccl.plan(one_way.build(), "allgather")
