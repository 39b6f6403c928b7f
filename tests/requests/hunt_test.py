"""Tests the hunt: draws are the same everywhere, requests meet all there is, every check fires on a program with that fault, and
what is found becomes small. A faulty program is xccl-synth behind a script that changes what it does."""

import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path("tests/requests").absolute()
SYNTH = pathlib.Path(os.environ.get("XCCL_SYNTH", "cli/xccl-synth")).absolute()
sys.path.insert(0, str(HERE))

import change
import draw
import library
import machines
import plays
from draw import Request
from machines import Link, Machine, Node
from shell import Fault, Shell
from shrink import shrink

GPUS = tuple(Node("gpu", f"g{n}") for n in range(4))
CABLES = tuple(Link(f"g{n}", f"g{(n + 1) % 4}", 25 * 10**9) for n in range(4))
RING = Machine(GPUS, CABLES)
ALLGATHER = Request("plan", RING, of_collective=(("-c", "allgather"),), of_plan=(("-e", "ring"),), size="64KiB")

# A program that does what xccl-synth does, but for what `body` says. It knows `words`, its arguments, and
# `real()`, which runs xccl-synth and returns (code, out, err).
FAKE = """#!/usr/bin/python3
import json, os, re, signal, subprocess, sys, time
words = sys.argv[1:]
def real(words=words):
    done = subprocess.run(["{synth}", *words], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr
def end(code, out, err=""):
    sys.stdout.write(out)
    sys.stderr.write(err)
    sys.exit(code)
def edited(change):  # the JSON of the real program, changed
    code, out, err = real()
    value = json.loads(out)
    change(value)
    end(code, json.dumps(value), err)
{body}
end(*real())
"""


class HuntTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def fake(self, body):
        path = self.folder / "fake"
        path.write_text(FAKE.format(synth=SYNTH, body=body))
        path.chmod(0o755)
        return path

    def shell(self, program, **limits):
        folder = self.folder / "requests"
        folder.mkdir(exist_ok=True)
        return Shell(program, folder, **limits)

    def fault(self, body, request, **limits):
        """The kind of the fault that a request meets; None without one."""
        try:
            plays.play(request, self.shell(self.fake(body), **limits))
        except Fault as fault:
            return fault.kind.removesuffix(" (a: b)")
        return None


class Draws(HuntTest):
    def test_same_everywhere(self):
        program = "import draw; print([draw.draw(seed, n) for seed in (1, 2) for n in range(200)])"
        said = [
            subprocess.run([sys.executable, "-c", program], cwd=HERE, env={"PYTHONHASHSEED": h}, capture_output=True, check=True).stdout
            for h in ("1", "2")
        ]
        self.assertEqual(said[0], said[1])
        self.assertNotEqual(draw.draw(1, 0), draw.draw(2, 0))

    def test_meets_all_there_is(self):
        text = " ".join(repr(draw.draw(1, n)) for n in range(6000))
        words = set(re.findall(r"[\w./:=-]+", text))
        for what in (draw.ENGINES, draw.COLLECTIVES, draw.EMITS, draw.TYPES, draw.SMALL_LIBRARY, plays.STEPS, plays.CHANGED):
            self.assertEqual(set(what) - words, set())
        self.assertEqual(set(plays.PLAYS) - words, {"library"})

    def test_engines_and_machines_are_those_of_the_program(self):
        table = re.findall(r"^\| \[`([\w-]+)`\]", pathlib.Path("docs/synthesis.md").read_text(), re.MULTILINE)
        self.assertEqual(sorted(table), sorted(draw.ENGINES))
        listed = self.shell(SYNTH).run("topo", "--list").out
        rows = re.findall(r"^\| \[([\w-]+)\][^|]*\| (\d+)", pathlib.Path("docs/machines.md").read_text(), re.MULTILINE)
        large = {name for name, gpus in rows if int(gpus) >= 1024}  # requests plan on smaller ones, and on rail-128
        self.assertEqual(set(draw.LIBRARY) | large, set(re.findall(r"^([\w-]+)", listed, re.MULTILINE)))

    def test_machines_of_every_kind_are_read(self):
        for number, kind in enumerate(sorted(machines.KINDS)):
            builder = machines.Builder(random.Random(number))
            machines.KINDS[kind](builder, 8)
            shell = self.shell(SYNTH)
            shell.write("machine.xml", Machine(tuple(builder.nodes), tuple(builder.links)).xml())
            self.assertEqual(shell.run("topo", "machine.xml").code, 0, kind)

    def test_changes(self):
        for text in ('{"a": [1, 2, {"b": "x"}], "c": 3}', '<topology><gpu id="0"/><gpu id="1"/></topology>', "1,2\n3,4\n"):
            changed = [change.change(text, seed) for seed in range(200)]
            self.assertEqual(changed, [change.change(text, seed) for seed in range(200)])
            self.assertGreater(len(set(changed)), 20)


class Faults(HuntTest):
    def test_none(self):
        then = (*((name,) for name in plays.STEPS if name != "emit"), *(("emit", to) for to in draw.EMITS))
        self.assertIsNone(self.fault("", ALLGATHER._replace(then=then)))
        self.assertIsNone(self.fault("", ALLGATHER._replace(play="sizes", sizes=("1KiB", "1MiB"), of_plan=())))
        self.assertIsNone(self.fault("", ALLGATHER._replace(play="engines")))
        damage = (("--degrade", "g0->g1=0.5"),)
        self.assertIsNone(self.fault("", ALLGATHER._replace(play="repair", of_machine=damage, then=(("verify",),))))
        for target in plays.CHANGED:
            if target not in ("foreign", "own.json", "groups.json", "counts.csv"):
                self.assertIsNone(self.fault("", ALLGATHER._replace(play="changed", target=target, changes=(1,))), target)

    def test_of_every_command(self):
        for body, expected in [
            ("os.kill(os.getpid(), signal.SIGSEGV)", "plan: SIGSEGV"),
            ("os.abort()", "plan: SIGABRT"),
            ("while True: pass", "plan: does not end"),
            ("end(4, '', 'xccl-synth: p: seen; expected')", "plan: exit code 4"),
            ("end(134, '')", "plan: exit code 134"),
            ("end(0, '', 'a.cc:1: check failed: x')", "plan: a message of a fault"),
            ("end(1, 'out', '')", "plan: fails without a word"),
            ("end(1, '', 'xccl-synth: ')", "plan: an error of another form"),
            ("end(1, '', 'xccl-synth: a: b; c.')", "plan: an error of another form"),
            ("end(0, '{')", "plan: no JSON"),
            ("end(1, '', 'xccl-synth: a: b; c')", None),
            ("open('p.plan.json', 'w'); end(1, '', 'xccl-synth: a: b; c')", "plan: fails and writes a file"),
            ("x = bytearray(200 << 20)", "plan: memory"),
        ]:
            self.assertEqual(self.fault(body, ALLGATHER, cpu_seconds=1, memory_bytes=150 << 20), expected, body)

    def test_of_limits(self):
        late = "end = time.process_time() + 5.2\nwhile time.process_time() < end: pass\nsys.exit(0)"
        limited = ALLGATHER._replace(of_plan=(("--time-limit", "10ms"),))
        self.assertEqual(self.fault(late, limited), "plan: later than --time-limit")

    def test_of_what_is_printed(self):
        of = lambda command, change: f"if words[0] == '{command}': edited(lambda v: {change})"
        for step, body, expected in [
            ((), of("plan", "v.update(time_us=v['bound_us'] / 2)"), "plan: faster than its bound"),
            ((), of("plan", "v.update(latency_us=v['bound_us'] * 2)"), "plan: a bound below that of latency"),
            (("bound",), of("bound", "v.update(bound_us=1)"), "bound: another than plan's"),
            (("bound",), "if words[0] == 'bound': end(3, '', 'xccl-synth: a: b')", "bound: refuses what was planned"),
            (("verify",), of("verify", "v.update(ok=False)"), "verify: not ok"),
            (("verify",), "if words[0] == 'verify': end(1, '', 'xccl-synth: a: b')", "verify: refuses a plan"),
            (("simulate",), of("simulate", "v[0].update(time_us=9)"), "simulate: another time than plan's"),
            (("simulate",), of("simulate", "v[0].update(bound_us=1)"), "simulate: another bound than plan's"),
            (("simulate",), of("simulate", "v[1].update(time_us=1)"), "simulate: time_us falls as the size grows"),
            (("simulate",), of("simulate", "v[1].update(bound_us=1)"), "simulate: bound_us falls as the size grows"),
            (("simulate",), of("simulate", "v[1].update(bound_us=1e9)"), "simulate: faster than the bound"),
            (("program",), of("simulate", "v[0].update(time_us=9)"), "simulate: another time of the program than plan's"),
            (("check_plan",), of("plan", "v.update(time_us=v['time_us'] + 1e-6)"), "check_plan.py: another time"),
            (("again",), "if 'again.plan.json' in words: edited(lambda v: v.update(steps=9))", "plan: prints something else the second time"),
            (
                ("again",),
                "if 'again.plan.json' in words: said = real(); open('again.plan.json', 'a').write(' '); end(*said)",
                "plan: writes other bytes the second time",
            ),
            (("emit", "host"), "if words[0] == 'emit': end(3, '', 'xccl-synth: a: b')", "emit: exit code 3"),
            (("emit", "msccl-xml"), "if words[0] == 'import': end(1, '', 'xccl-synth: a: b')", "import: refuses what emit wrote"),
            (("run",), of("run", "v[1].update(wrong=3)"), "run: wrong elements"),
            (("run",), "if words[0] == 'run': end(5, '', 'xccl-synth: rank 1: nothing moved for 30000 ms')", "run: hangs"),
            (("view",), "if words[0] == 'view': end(1, '', 'xccl-synth: a: b')", "view: refuses a plan"),
            (("from",), "if '--from' in words: edited(lambda v: v.update(time_us=1e9))", "plan --from: slower"),
        ]:
            plan = ALLGATHER._replace(then=(step,) if step else (), of_plan=(("-e", "greedy"),))
            self.assertEqual(self.fault(body, plan), expected, body)
            self.assertIsNone(self.fault("", plan), expected)

    def test_of_plan_files(self):
        """A plan file that is wrong, of a program that does not say so."""
        body = """
if words[0] == "plan":
    said = real()
    value = json.load(open("p.plan.json"))
    # Without its last transfer.
    value["schedule"] = {key: column[:-1] if key != "chunks" else column for key, column in value["schedule"].items()}
    json.dump(value, open("p.plan.json", "w"))
    end(*said)
"""
        self.assertEqual(self.fault(body, ALLGATHER._replace(then=(("check_plan",),))), "check_plan.py: [S6]")

    def test_of_other_plays(self):
        engines = ALLGATHER._replace(play="engines", of_plan=())
        slow = "if words[0] == 'plan': edited(lambda v: v.update(time_us=v['time_us'] * 1.5))"
        self.assertEqual(self.fault(slow, engines), "plan: auto is slower than an engine")
        compare = ALLGATHER._replace(play="compare", of_plan=(("--engines", "ring,direct"),), size="", sizes=("1KiB", "1MiB"))
        self.assertIsNone(self.fault("", compare))
        self.assertIsNone(self.fault("", compare._replace(of_plan=(("--csv",),))))
        fast = "if words[0] == 'compare': edited(lambda v: v[0].update(time_us=0.1))"
        self.assertEqual(self.fault(fast, compare), "compare: faster than the bound")
        refused = "if words[0] == 'topo': end(1, '', 'xccl-synth: a: b')"
        self.assertEqual(self.fault(refused, compare), "compare: takes a machine that topo refuses")
        files = (("relabelled.xml", RING.xml()), ("less.xml", RING._replace(links=CABLES[1:]).xml()))
        relations = ALLGATHER._replace(play="relations", of_plan=(("-e", "greedy"),), files=files)
        self.assertIsNone(self.fault("", relations))
        bound = "if 'relabelled.xml' in words: edited(lambda v: v.update(bound_us=1, latency_us=1))"
        self.assertEqual(self.fault(bound, relations), "plan: another bound in another order of nodes")
        code = "if 'relabelled.xml' in words: end(3, '', 'xccl-synth: a: b')"
        self.assertEqual(self.fault(code, relations), "plan: another exit code in another order of nodes")
        lower = "if 'less.xml' in words: edited(lambda v: v.update(bound_us=v['bound_us'] / 9, latency_us=0))"
        self.assertEqual(self.fault(lower, relations), "plan: a lower bound without a link")
        falls = "if '1MiB' in words: edited(lambda v: v.update(time_us=v['bound_us'] + 1, bound_us=v['bound_us'] / 1e3, latency_us=0))"
        sizes = ALLGATHER._replace(play="sizes", sizes=("1KiB", "1MiB"))
        self.assertEqual(self.fault(falls, sizes), "plan: bound_us falls as the size grows")
        programs = "first = '1KiB' in words; edited(lambda v: v.update(time_us=1e6 if first else v['time_us'], time_program_us={}))"
        self.assertIsNone(self.fault(programs.format("1 if first else 2"), sizes))
        program_falls = "plan: time_program_us falls as the size grows"
        self.assertEqual(self.fault(programs.format("2 if first else 1"), sizes), program_falls)
        repair = ALLGATHER._replace(play="repair", of_machine=(("--degrade", "g0->g1=0.5"),), then=(("verify",),))
        body = "if words[0] == 'verify': end(1, '', 'xccl-synth: a: b')"
        self.assertEqual(self.fault(body, repair), "verify: refuses a plan")
        library = Request("library", "dgx1", of_collective=(("-c", "allgather"),), of_plan=(("-e", "ring"),), size="99991")
        self.assertIsNone(self.fault("", library))
        self.assertIsNone(self.fault("", library._replace(size="1")))
        self.assertEqual(self.fault("end(3, '', 'xccl-synth: a: b')", library), "plan: refuses a machine of the library")

    def test_of_changed_files(self):
        plan = ALLGATHER._replace(play="changed", target="plan", changes=(0,))
        takes = "if words[0] == 'simulate': end(0, '[]')\nif words[0] == 'verify': end(1, '', 'xccl-synth: a: b')"
        self.assertEqual(self.fault(takes, plan), "simulate: takes a plan that verify refuses")
        # A verifier that takes everything, among many changes.
        blind = "if words[0] != 'plan': end(0, '[]')"
        kinds = {self.fault(blind, plan._replace(changes=(seed,))) for seed in range(40)}
        self.assertIn("verify: takes a plan that check_plan.py refuses", kinds)
        machine = ALLGATHER._replace(play="changed", target="machine", changes=())
        other = "if words[:2] == ['topo', 'expanded.xml']: end(0, '')"
        self.assertEqual(self.fault(other, machine), "topo: writes another machine than it read")
        refused = "if words[0] == 'topo': end(1, '', 'xccl-synth: a: b')"
        self.assertEqual(self.fault(refused, machine), "plan: takes a machine that topo refuses")
        foreign = ALLGATHER._replace(play="changed", target="msccl-xml", changes=())
        wrong = "if words[0] == 'run': edited(lambda v: v[0].update(wrong=1))"
        self.assertEqual(self.fault(wrong, foreign), "run: wrong elements")


class Small(HuntTest):
    # Ends where a GPU has a link without latency on a machine of three GPUs or more, whatever else is asked for.
    BODY = """
if words[0] == "plan" and os.path.exists("machine.xml"):
    text = open("machine.xml").read()
    links = re.findall("<link.*", text)
    if text.count("<gpu") >= 3 and any("latency" not in link for link in links):
        os.abort()
end(0, "{}") if words[0] != "topo" else end(*real())
"""

    def least(self, request):
        program = self.fake(self.BODY)

        def kind_of(candidate):
            try:
                plays.play(candidate, self.shell(program))
            except Fault as fault:
                return fault.kind
            except KeyError:  # the fake's plans have no times
                return None
            return None

        self.assertEqual(kind_of(request), "plan: SIGABRT")
        return shrink(request, kind_of, "plan: SIGABRT", lambda: self.shell(program), 600)

    def test_least_machine_and_flags(self):
        nodes = (*GPUS, Node("switch", "s0", None, True, True), Node("nic", "n0", "h0"))
        links = (*CABLES, Link("g0", "s0", 10**9, 0, 50), Link("g1", "s0", 10**9), Link("g2", "n0", 7, 0, 0, False))
        request = Request(
            "plan",
            Machine(nodes, links, "sm90"),
            (("--plain-switches",),),
            (("-c", "allreduce"), ("--ranks", "0,1,2")),
            (("-e", "ring"), ("--chunks", "7")),
            "1MiB",
            (("own.json", "[1, 2]"),),
            (("verify",), ("run",)),
        )
        least = self.least(request)
        self.assertEqual(len(least.topology.gpus()), 3)
        self.assertEqual(len(least.topology.links), 1)
        self.assertEqual(least.topology.links[0].latency_ps, 0)
        self.assertIsNone(least.topology.arch)
        self.assertEqual((least.of_machine, least.of_collective, least.of_plan, least.then), ((), (), (), ()))
        self.assertEqual((least.size, least.files), ("0", (("own.json", "[]"),)))

    def test_machines_of_other_forms_are_written_out(self):
        least = self.least(ALLGATHER._replace(topology=RING._replace(links=tuple(link._replace(latency_ps=0) for link in CABLES))))
        self.assertEqual((len(least.topology.gpus()), len(least.topology.links)), (3, 1))
        body, self.BODY = self.BODY, "if words[0] == 'plan': os.abort()"
        least = self.least(ALLGATHER._replace(topology="torus:2x3"))
        self.BODY = body
        self.assertEqual((least.topology.nodes, least.topology.links), ((), ()))


class Hunt(HuntTest):
    def hunt(self, program, *words):
        done = subprocess.run(
            [sys.executable, HERE / "hunt", "--binary", program, "--keep", self.folder / "kept", *words], capture_output=True, text=True
        )
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def test_right_program(self):
        code, out = self.hunt(SYNTH, "--only", "2")
        self.assertEqual(code, 0, out)
        self.assertRegex(out, r"seed 1: 1 requests, \d+ commands, 0 faults\n$")

    def test_faulty_program(self):
        code, out = self.hunt(self.fake("if words[0] == 'plan': os.abort()"), "--only", "2")
        self.assertEqual(code, 1)
        self.assertIn("FAULT in request 2 of seed 1: plan: SIGABRT", out)
        self.assertIn("plan: SIGABRT: request 2; again: --seed 1 --only 2\n", out)
        self.assertRegex(out, r"the least request, in \S+/kept/2:\n    xccl-synth plan machine.xml -s \S+ -o p.plan.json --json\n")
        self.assertTrue((self.folder / "kept" / "2" / "machine.xml").exists())

    def test_library(self):
        code, out = self.hunt(self.fake("if words[0] == 'plan': end(1, '', 'xccl-synth: a: b')"), "--library", "--only", "3")
        self.assertEqual(code, 1)
        self.assertIn("plan: refuses a machine of the library (a: b)", out)

    def test_library_is_whole(self):
        drawn, number = library.Draw(True), len(draw.LIBRARY) * len(draw.COLLECTIVES)
        asked = {(request.topology, request.of_collective) for request in (drawn(1, n) for n in range(number))}
        self.assertEqual(len(asked), number)
        self.assertEqual({machine for machine, _ in asked}, set(draw.LIBRARY))
        sizes = {drawn(1, number * n).size for n in range(library.SIZES)}
        self.assertGreater(len(sizes), library.SIZES - 5)  # the smallest may be drawn twice
        self.assertEqual({int(size) % 2 for size in sizes}, {1})
        self.assertIsNone(drawn(1, number * library.SIZES))


if __name__ == "__main__":
    unittest.main()
