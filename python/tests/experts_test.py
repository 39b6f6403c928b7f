"""Plans of expert dispatch: the command line's plan, file and words."""

import copy
import json
import pathlib
import pickle
import subprocess
import tempfile
import unittest

import xccl_synth as xccl

COMMAND = pathlib.Path("cli/xccl-synth").absolute()
SIZES = dict(experts=32, top_k=4, tokens=64, row="256B", draws=5)
FLAGS = ["--experts", "32", "--top-k", "4", "--tokens", "64", "--row", "256B", "--draws", "5"]


def said(*words):
    return subprocess.run([COMMAND, *words], capture_output=True, text=True)


class Experts(unittest.TestCase):
    def test_the_plan_is_that_of_the_command_line(self):
        for collective in ("dispatch", "combine"):
            plan = xccl.plan("rail-2", collective, routing="zipf:1.0", aim="latency", **SIZES)
            with tempfile.TemporaryDirectory() as folder:
                theirs, ours = pathlib.Path(folder, "a.json"), pathlib.Path(folder, "b.json")
                ran = said("plan", "rail-2", "-c", collective, "--routing", "zipf:1.0", "--aim", "latency", *FLAGS, "-o", theirs, "--json")
                self.assertEqual(ran.returncode, 0, ran.stderr)
                plan.save(ours)
                self.assertEqual(ours.read_bytes(), theirs.read_bytes())
                self.assertEqual(xccl.ExpertPlan.load(theirs).route, plan.route)
                simulated = json.loads(said("simulate", theirs, "--routing", "zipf:1.0", "--draws", "2", "--json").stdout)
                self.assertEqual(xccl.verify(theirs), [])
            facts = json.loads(ran.stdout)
            for name in ("file", "warnings", "synthesis_s", "total_s", "version"):
                del facts[name]
            self.assertEqual({**plan.facts, "routing": None}, {**facts, "routing": None})
            table = plan.simulate("zipf:1.0", draws=2)
            self.assertEqual(table["time_us"].tolist(), [row["time_us"] for row in simulated])
            self.assertEqual(table["ratio"].tolist(), [row["ratio"] for row in simulated])

    def test_it_is_proved_run_and_drawn(self):
        plan = xccl.plan("rail-2", "dispatch", **SIZES)
        self.assertEqual(plan.verify(), [])
        self.assertEqual(xccl.verify(plan), [])
        for dtype in ("bfloat16", "half", "float"):
            rows = plan.run("zipf:1.0", tokens=8, dtype=dtype, iters=2)
            self.assertEqual(rows["call"].tolist(), ["dispatch", "combine"] * 2)
            self.assertEqual(rows["wrong"].sum(), 0)
        self.assertEqual(plan.to_svg()[:4], "<svg")
        self.assertEqual(plan.view().count("<svg"), 8)

    def test_pickles(self):
        plan = xccl.plan("rail-2", "combine", **SIZES)
        for other in (pickle.loads(pickle.dumps(plan)), copy.copy(plan), copy.deepcopy(plan)):
            self.assertEqual(other.facts, plan.facts)
            self.assertEqual(other.topology, plan.topology)
            self.assertEqual(other.verify(), [])

    def test_wrong_arguments_have_the_words_of_the_command_line(self):
        for arguments, flags in (
            (dict(experts=33), ["--experts", "33"]),
            (dict(experts=16, top_k=17), ["--experts", "16", "--top-k", "17"]),
            (dict(row=100), ["--row", "100B"]),
            (dict(routing="unifrom"), ["--routing", "unifrom"]),
            (dict(routing="zipf:9"), ["--routing", "zipf:9"]),
        ):
            with self.subTest(flags):
                with self.assertRaises(ValueError) as raised:
                    xccl.plan("rail-2", "dispatch", **arguments)
                ran = said("plan", "rail-2", "-c", "dispatch", *flags)
                self.assertIn(str(raised.exception), ran.stderr)
        # The command line checks this flag's range as it checks those of other whole numbers.
        with self.assertRaises(ValueError) as raised:
            xccl.plan("rail-2", "dispatch", tokens=0)
        self.assertEqual(str(raised.exception), "tokens: 0; expected 1 to 1048576; hint: --tokens=1")
        self.assertIn("--tokens: '0': expected a whole number from 1 to 1048576", said("plan", "rail-2", "-c", "dispatch", "--tokens", "0").stderr)
        for text, call in (
            ("aim: 'fast'; expected latency or throughput", lambda: xccl.plan("rail-2", "dispatch", aim="fast")),
            ("size: not together with collective dispatch", lambda: xccl.plan("rail-2", "dispatch", size="1MiB")),
            ("tokens: only together with collective dispatch or combine", lambda: xccl.plan("rail-2", "allreduce", tokens=4)),
            ("draws: 0; expected 1 to 1048576", lambda: xccl.plan("rail-2", "dispatch", draws=0)),
            ("row: 1.5; expected whole bytes, or a text such as 64MiB", lambda: xccl.plan("rail-2", "dispatch", row=1.5)),
        ):
            with self.subTest(text):
                with self.assertRaises(xccl.UsageError) as raised:
                    call()
                self.assertEqual(str(raised.exception), text)
