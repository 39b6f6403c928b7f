"""Tests the attack: its words of the protocol, and that each check sees the fault that it is for. No group is started: groups are
stood in for by what would have been seen of them."""

import importlib.machinery
import importlib.util
import pathlib
import signal
import sys
import types
import unittest

HERE = pathlib.Path("tests/attack").absolute()
sys.path.insert(0, str(HERE))

import ends
import kills
import liars
import lies
import strangers
import wire
from group import Group

loader = importlib.machinery.SourceFileLoader("attack", str(HERE / "attack"))
attack = importlib.util.module_from_spec(importlib.util.spec_from_loader("attack", loader))
loader.exec_module(attack)


class Seen(Group):
    """A group as it was seen: what each rank said, how it ended, and when after the start."""

    def __init__(self, said, ended=0, end_s=0.5, hung=(), peak_bytes=0):
        self.said = [list(lines) for lines in said]
        count = len(self.said)
        self.ended = list(ended) if isinstance(ended, (list, tuple)) else [ended] * count
        self.end_s, self.peak_bytes = [end_s] * count, [peak_bytes] * count
        self.hung, self.stacks, self.began, self.token = list(hung), {}, 0, "ab" * 16
        self.processes = [types.SimpleNamespace(pid=100 + rank) for rank in range(count)]

    def run(self, until_s, but=()):
        return self.hung


RIGHT = [["at init 0.1", "at sync 0.2", "at destroy 0.3", "end 0.4"]] * 4


def failed(text, number=4):
    return [[f"failed loop: {text}"]] * number


class Words(unittest.TestCase):
    def test_version_1_computes_what_the_library_computed(self):
        self.assertEqual(wire.port_of("explicit explicit"), 26236)

    def test_hello_and_welcome_are_read_as_they_are_written(self):
        hello = wire.read_hello(wire.hello(2, host="h", address="10.0.0.1", port=7, pid=5, challenge=b"c" * 32))
        self.assertEqual((hello["rank"], hello["ranks"], hello["host"], hello["port"]), (2, 4, b"h", 7))
        self.assertEqual(wire.read_welcome(wire.welcome("job", [hello]))[1][0]["challenge"], b"c" * 32)

    def test_seal(self):
        caller, door = wire.Seal(b"k" * 32, calls=True), wire.Seal(b"k" * 32, calls=False)
        message = caller.close(wire.HELLO, b"body")
        self.assertIsNone(door.open(wire.FAIL, message))
        self.assertIsNone(caller.open(wire.HELLO, message))
        self.assertEqual(door.open(wire.HELLO, message), b"body")
        self.assertIsNone(door.open(wire.HELLO, message))  # a second time

    def test_partners_have_one_key(self):
        mine, theirs = b"m" * 32, b"t" * 32
        low = wire.seal_of_partners("secret", b"job", 1, mine, {"rank": 3, "challenge": theirs})
        high = wire.seal_of_partners("secret", b"job", 3, theirs, {"rank": 1, "challenge": mine})
        self.assertEqual(high.open(wire.PARTNER, low.close(wire.PARTNER, b"x")), b"x")


class Checks(unittest.TestCase):
    """Each check sees its own fault, and none where there is none."""

    def test_ends(self):
        def seen(group):
            return ends.wrong_with(group, "init sync destroy", 1)

        self.assertEqual(seen(Seen(RIGHT, end_s=0.6)), [])
        self.assertEqual(seen(Seen(RIGHT, end_s=9)), ["the last rank ended 8.7 s after the last call; expected 1 s at most"])
        self.assertIn("rank 2: did not end", seen(Seen(RIGHT, hung=[2]))[0])
        self.assertEqual(seen(Seen(RIGHT, ended=[0, 99, 0, 0])), ["rank 1: exit 99: end 0.4"])
        self.assertEqual(seen(Seen(RIGHT, ended=[0, 0, 0, -11])), ["rank 3: SIGSEGV: end 0.4"])

    def test_last_call_of_steps(self):
        self.assertEqual(ends.end_of("init sync split sync destroy destroy"), "destroy")
        self.assertEqual(ends.end_of("init allreduce=1 destroy"), "destroy")
        for steps in ends.STEPS.values():
            self.assertIn(ends.end_of(steps), steps.split())

    def test_kills(self):
        def seen(group, well=False):
            return kills.survivors_of(group, 1, 0, 1, kills.name_of(1, group), well)

        self.assertEqual(seen(Seen(failed("rank 1: its process has ended"), ended=16)), [])
        self.assertEqual(seen(Seen(failed("ranks 0, 1 of 4 did not come"), ended=16)), [])
        self.assertEqual(len(seen(Seen(failed("rank 11: its process has ended"), ended=16))), 3)
        self.assertIn("expected 1 s at most", seen(Seen(failed("rank 1: gone"), ended=16, end_s=1.5))[0])
        self.assertIn("expected an error", seen(Seen(RIGHT))[0])
        self.assertEqual(seen(Seen(RIGHT), well=True), [])
        self.assertIn("SIGSEGV", seen(Seen(failed("rank 1"), ended=-11))[0])
        self.assertIn("did not end", seen(Seen(failed("rank 1"), ended=16, hung=[3]))[0])

    def test_rank_0_may_be_named_by_the_rendezvous(self):
        group = Seen(RIGHT)
        self.assertRegex("the process that served it (host h, pid 100) has ended", kills.name_of(0, group))
        self.assertNotRegex("the process that served it (host h, pid 101) has ended", kills.name_of(0, group))

    def test_the_table_has_every_phase(self):
        self.assertEqual({phase for _, phase in kills.WITHIN_S}, set(kills.PHASES))
        self.assertEqual(len(kills.WITHIN_S), 2 * len(kills.PHASES))
        for phase in kills.PHASES:
            self.assertTrue(any(kills.in_short(signal.SIGKILL, phase, place) for place in kills.PLACES))

    def test_strangers(self):
        begun = [["at allreduce=100 0.3"]] * 4
        self.assertEqual(strangers.disturbed(Seen(begun), 0.2), [])
        late = Seen([["at allreduce=100 1.5"]] * 4)
        self.assertEqual(strangers.disturbed(late, 0.2), ["the start took 1.5 s; expected 1.2 s at most"])
        self.assertEqual(strangers.disturbed(Seen(begun, ended=[0, 0, 0, 99]), 0.2), ["rank 3: exit 99: at allreduce=100 0.3"])

    def test_secrets(self):
        group = Seen(RIGHT)
        self.assertEqual(strangers.learnt(group, b"what anybody may hear"), [])
        for secret in (group.token.encode(), bytes.fromhex(group.token), wire.token_1(group.token), wire.key_of(group.token)):
            self.assertEqual(len(strangers.learnt(group, (b"before" + secret + b"after").hex())), 1)
        self.assertEqual(strangers.learnt(group, wire.encode(wire.WELCOME)), ["a stranger was welcomed as a rank"])

    def test_liars(self):
        def seen(text, ended=16, **more):
            return liars.wrong_with(Seen(failed(text), ended=ended, **more), range(3), more.get("hung", []), r"\brank 3\b")

        self.assertEqual(seen("rank 3: lies"), [])
        self.assertEqual(len(seen("somebody lies")), 3)
        self.assertIn("exit 13", seen("rank 3: internal", ended=13)[0])
        self.assertIn("SIGABRT", seen("rank 3", ended=-6)[0])
        self.assertIn("is not to be printed", seen("rank 3: \x1b[2J")[0])
        self.assertIn("a text of", seen("rank 3: " + "x" * 5000)[0])
        self.assertIn("MiB", seen("rank 3", peak_bytes=400 << 20)[0])
        self.assertIn("ended after", seen("rank 3", end_s=60)[0])
        self.assertIn("did not end", seen("rank 3", hung=[0])[0])

    def test_many_lies(self):
        every = list(liars.every_lie())
        self.assertEqual(len({name for name, _ in every}), len(every))
        self.assertGreater(len(every) + len(lies.SERVERS), 56)


class Told(unittest.TestCase):
    def test_ranks_that_say_one_thing_are_told_together(self):
        self.assertEqual(list(attack.short(["rank 0: x", "rank 2: x", "rank 1: y", "z"])), ["ranks 0, 2: x", "rank 1: y", "z"])

    def test_long_lines_are_cut(self):
        self.assertEqual(list(attack.short(["x" * 1000])), ["x" * 400 + "..."])

    def test_a_case_that_raises_is_a_fault(self):
        def case(_):
            raise KeyError("no such place")

        self.assertIn("no such place", attack.try_case(case, None)[0])


if __name__ == "__main__":
    unittest.main()
