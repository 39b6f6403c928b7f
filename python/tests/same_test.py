"""The package and the command line make the same plans, times and texts."""

import json
import pathlib
import subprocess
import tempfile
import unittest

import xccl_synth as xccl

SYNTH = "cli/xccl-synth"


def synth(*words):
    return subprocess.run([SYNTH, *words], capture_output=True, text=True)


class Same(unittest.TestCase):
    def test_plan_files(self):
        cases = [
            ("ring:4", "allgather", "1MiB", []),
            ("dgx-a100", "allreduce", "1MiB", []),
            ("fat-tree:k=4", "alltoall", "64KiB", ["--chunks=1"]),
        ]
        with tempfile.TemporaryDirectory() as folder:
            theirs, ours = pathlib.Path(folder) / "a.plan.json", pathlib.Path(folder) / "b.plan.json"
            for topology, collective, size, flags in cases:
                ran = synth("plan", topology, "-c", collective, "-s", size, "-o", str(theirs), "--json", *flags)
                self.assertEqual(ran.returncode, 0, ran.stderr)
                options = {"chunks": 1} if flags else {}
                plan = xccl.plan(topology, collective, size=size, **options)
                plan.save(ours)
                self.assertEqual(theirs.read_bytes(), ours.read_bytes(), topology)
                row = json.loads(ran.stdout)
                for name, value in row.items():
                    if name not in ("synthesis_s", "total_s", "file", "warnings"):
                        self.assertEqual(plan.facts[name], value, name)

    def test_simulate_compare_and_bound(self):
        plan = xccl.plan("torus:4x4", "allreduce", size="1MiB")
        with tempfile.TemporaryDirectory() as folder:
            file = str(pathlib.Path(folder) / "a.plan.json")
            plan.save(file)
            for level in ("schedule", "program"):
                rows = json.loads(synth("simulate", file, "--sizes", "1KiB:1MiB:x32", "--level", level, "--json").stdout)
                ours = plan.simulate("1KiB:1MiB:x32", level=level)
                self.assertEqual([row["time_us"] for row in rows], ours["time_us"].tolist())
                self.assertEqual([row["bound_us"] for row in rows], ours["bound_us"].tolist())
        ran = synth("compare", "torus:4x4", "-c", "allreduce", "--sizes", "1MiB", "--engines", "ring,bfb,auto", "--json")
        rows = json.loads(ran.stdout)
        ours = xccl.compare("torus:4x4", "allreduce", "1MiB", engines=["ring", "bfb", "auto"])
        for name in ("engine", "made_by", "time_us", "ratio", "busbw_gb_per_s"):
            self.assertEqual([row[name] for row in rows], ours[name].tolist(), name)
        row = json.loads(synth("bound", "dgx1", "-c", "broadcast", "--json").stdout)
        bound = xccl.bound("dgx1", "broadcast")
        for name in ("latency_us", "bandwidth_us", "bound_us", "algbw_gb_per_s"):
            self.assertAlmostEqual(getattr(bound, name), row[name], msg=name)
        self.assertEqual(bound.kind, row["bound_kind"])

    def test_pictures(self):
        for form in ("svg", "dot"):
            self.assertEqual(synth("topo", "rail-4", "--format", form).stdout, getattr(xccl.Topology("rail-4"), f"to_{form}")())
        plan = xccl.plan("torus:4x4", "allreduce", size="1MiB")
        with tempfile.TemporaryDirectory() as folder:
            file = str(pathlib.Path(folder) / "a.plan.json")
            plan.save(file)
            for form in ("svg", "dot", "perfetto"):
                self.assertEqual(synth("emit", file, "--to", form).stdout, plan.emit(form), form)

    def test_fronts(self):
        rows = json.loads(synth("plan", "dgx1", "-c", "alltoall", "--pareto", "--json").stdout)
        front = xccl.pareto("dgx1", "alltoall")
        for name in ("chunks", "steps", "rounds", "cost", "cost_value", "bound", "proved_by", "found_by"):
            self.assertEqual([row[name] for row in rows], front[name].tolist(), name)
        self.assertEqual([row["proved_chunks"] or 0 for row in rows], front["proved_chunks"].tolist())
        self.assertTrue(all(row["front_complete"] == front.complete for row in rows))

    def test_books(self):
        with tempfile.TemporaryDirectory() as folder:
            theirs, ours = pathlib.Path(folder) / "theirs", pathlib.Path(folder) / "ours"
            words = ("--collectives", "allreduce,broadcast", "--sizes", "64KiB:16MiB:x16", "--root", "1", "--json")
            rows = json.loads(synth("book", "dgx-h100", "-o", str(theirs), *words).stdout)
            book = xccl.book("dgx-h100", ours, ["allreduce", "broadcast"], "64KiB:16MiB:x16", roots=1)
            for name in ("collective", "size_bytes", "engine", "predicted_us", "ctas", "nccl_algorithm", "nccl_us", "gain", "kept"):
                self.assertEqual([row[name] for row in rows], book[name].tolist(), name)
            self.assertEqual([-1 if row["root"] is None else row["root"] for row in rows], book["root"].tolist())
            self.assertEqual([row["file"] or "" for row in rows], book["file"].tolist())
            files = sorted(path.name for path in theirs.iterdir())
            self.assertEqual(files, sorted(path.name for path in ours.iterdir()))
            for name in files:
                self.assertEqual((theirs / name).read_bytes(), (ours / name).read_bytes(), name)

    def test_explanations(self):
        for words, arguments in (
            (("dgx1", "-c", "allgather", "-s", "1MiB"), dict(size="1MiB", lower=False)),
            (("ring:4", "-c", "allgather", "-e", "ring", "-s", "1KiB", "--lower"), dict(size="1KiB", engine="ring")),
        ):
            ran = synth("plan", *words, "--explain")
            plan = xccl.plan(words[0], "allgather", **arguments)
            self.assertEqual(plan.explain() + "\n", ran.stdout[ran.stdout.index("why\n") :])

    def test_errors(self):
        cases = [
            (("plan", "ring:4", "-c", "allgather", "-e", "rings"), dict(engine="rings")),
            (("plan", "ring:4", "-c", "allgather", "-e", "smt", "--steps=1", "--chunks=1"), dict(engine="smt", steps=1, chunks=1)),
            (("plan", "ring:4", "-c", "allgather", "--machine", "hoper"), dict(machine="hoper")),
            (("plan", "ring:4", "-c", "allgather", "-s", "3"), dict(size=3)),
            (("plan", "ring:5000000", "-c", "allgather"), dict(topology="ring:5000000")),
        ]
        for words, arguments in cases:
            ran = synth(*words)
            with self.assertRaises(xccl.XcclError) as raised:
                xccl.plan(arguments.pop("topology", "ring:4"), "allgather", **arguments)
            self.assertEqual(raised.exception.exit_code, ran.returncode, ran.stderr)
            said = ran.stderr.strip().removeprefix("xccl-synth: ").removeprefix("--")
            self.assertEqual(str(raised.exception), said)
