"""Schedules that are written in Python: the same as the engines' where they say the same, and refused where they are wrong."""

import gc
import unittest

import numpy as np

import xccl_synth as xccl

SIZES = "1KiB,64KiB,1MiB,1GiB"


def moves_of(schedule):
    """What a schedule does, whatever the order within a step: (step, src, dst, first, count, reduce, links)."""
    columns = [schedule.transfers[name].tolist() for name in ("step", "src", "dst", "first", "count", "reduce")]
    return sorted((*row, schedule.paths[path]) for *row, path in zip(*columns, schedule.transfers["path"].tolist()))


class Engines(unittest.TestCase):
    """A ring, a tree and all pairs, each beside the engine of that name."""

    def same(self, own, engine, **arguments):
        theirs = xccl.plan(own.topology, own.collective.name, engine=engine, machine="none", size="1MiB", **arguments)
        self.assertEqual(theirs.engine, engine)
        self.assertEqual(own.violations(), [])
        self.assertEqual(moves_of(own), moves_of(theirs.schedule))
        mine = own.plan(size="1MiB", machine="none")
        self.assertEqual(mine.verify(), [])
        self.assertEqual(mine.engine, "python")
        for model in ("pipelined", "blocking"):
            self.assertEqual(
                mine.simulate(SIZES, model=model)["time_ps"].tolist(), theirs.simulate(SIZES, model=model)["time_ps"].tolist()
            )
        for name in ("steps", "rounds", "transfers", "messages", "depth", "time_ps", "time_program_ps", "bound_ps", "bitwise_same"):
            self.assertEqual(mine.facts[name], theirs.facts[name], name)
        self.assertEqual(mine.simulate(level="program")["time_ps"].tolist(), theirs.simulate(level="program")["time_ps"].tolist())
        return mine

    def test_ring_allgather(self):
        for n in (2, 3, 4, 8):
            with xccl.Schedule(f"nvswitch:{n}", "allgather") as s:
                for k in range(n - 1):
                    with s.step():
                        for r in range(n):
                            s.send(r, (r + 1) % n, (r - k) % n)
            self.same(s, "ring")

    def test_ring_allreduce(self):
        n = 4
        with xccl.Schedule(f"nvswitch:{n}", "allreduce", chunks=n) as s:
            for k in range(n - 1):
                s.step()
                for r in range(n):
                    s.reduce(r, (r - 1) % n, (r + k + 1) % n)
            for k in range(n - 1):
                s.step()
                for r in range(n):
                    s.send(r, (r + 1) % n, (r - k) % n)
        mine = self.same(s, "ring")
        self.assertEqual(mine.run("64KiB", iters=1)["wrong"].sum(), 0)
        self.assertIn("xccl", mine.emit("cuda"))

    def test_tree_broadcast(self):
        n = 8
        with xccl.Schedule(f"nvswitch:{n}", "broadcast") as s:
            reached, depth = {0: 0}, 0
            parents = [(rank, child) for rank in range(n) for child in (2 * rank + 1, 2 * rank + 2) if child < n]
            for parent, child in parents:
                reached[child] = reached[parent] + 1
            for depth in range(1, max(reached.values()) + 1):
                s.step()
                for parent, child in parents:
                    if reached[child] == depth:
                        s.send(parent, child, 0)
        self.same(s, "tree", root=0)

    def test_all_pairs(self):
        n = 4
        with xccl.Schedule(f"full-mesh:{n}", "alltoall") as s:
            for a in range(n):
                for b in range(n):
                    if a != b:
                        s.send(a, b, s.chunk((a, b)))
        self.same(s, "direct")
        with xccl.Schedule(f"full-mesh:{n}", "allgather") as s:
            for a in range(n):
                for b in range(n):
                    if a != b:
                        s.send(a, b, a)
        self.same(s, "direct")

    def test_all_pairs_in_one_array(self):
        n = 8
        src, dst = (side.ravel() for side in np.indices((n, n)))
        apart = src != dst
        with xccl.Schedule(f"full-mesh:{n}", "alltoall") as s:
            s.send(src[apart], dst[apart], (src * n + dst)[apart])
        self.same(s, "direct")

    def test_own_schedules_are_compared_and_saved(self):
        with xccl.Schedule("full-mesh:4", "allgather") as s:
            src, dst = np.nonzero(~np.eye(4, dtype=bool))
            s.send(src, dst, src)
        mine = s.plan(name="mine", size="1MiB")
        compared = xccl.compare(s.topology, "allgather", "1MiB", engines=["direct"], others={"mine": mine})
        self.assertEqual(compared["time_ps"][0], compared["time_ps"][1])


class Switches(unittest.TestCase):
    def test_multicast_and_sum_in_a_switch(self):
        n = 4
        with xccl.Schedule(f"nvswitch:{n}@multicast=true,reduce=true", "allreduce", chunks=n) as s:
            for r in range(n):
                s.reduce([other for other in range(n) if other != r], r, r)
            s.step()
            for r in range(n):
                s.send(r, [other for other in range(n) if other != r], r)
        self.assertEqual(s.num_transfers, 2 * n)
        self.assertEqual(len(s.paths[0]), n)
        self.assertEqual(s.plan(size="1MiB").run("64KiB", iters=1)["wrong"].sum(), 0)

    def test_a_plain_switch_cannot(self):
        with self.assertRaises(xccl.WrongSchedule) as raised:
            with xccl.Schedule("nvswitch:3", "broadcast") as s:
                s.send(0, [1, 2], 0)
        self.assertEqual(raised.exception.violations[0].rule, "S2")


class Paths(unittest.TestCase):
    def parallel(self):
        builder = xccl.TopologyBuilder("two cables")
        builder.gpus(2)
        builder.link(0, 1, bandwidth="10GB/s").link(0, 1, bandwidth="10GB/s")
        return builder.build()

    def test_parallel_links_take_turns(self):
        with xccl.Schedule(self.parallel(), "broadcast", chunks=4) as s:
            for chunk in range(4):
                s.send(0, 1, chunk)
        self.assertEqual(sorted(s.paths), [(0,), (2,)])
        self.assertEqual(np.bincount(s.transfers["path"]).tolist(), [2, 2])

    def test_a_path_of_ones_own(self):
        with xccl.Schedule(self.parallel(), "broadcast", chunks=4) as s:
            s.send(0, 1, 0, count=4, path=[2])
        self.assertEqual(s.paths, [(2,)])
        self.assertEqual(s.transfers["count"].tolist(), [4])


class Rejections(unittest.TestCase):
    def wrong(self, write, topology="ring:4", collective="allgather", **arguments):
        with self.assertRaises(xccl.XcclError) as raised:
            with xccl.Schedule(topology, collective, **arguments) as s:
                write(s)
        return f"{type(raised.exception).__name__}: {raised.exception}"

    def test_of_single_transfers(self):
        self.assertEqual(self.wrong(lambda s: s.send(0, 4, 0)), "InvalidInput: step 0: send: no rank 4; ranks are 0..3")
        self.assertEqual(self.wrong(lambda s: s.send(1, 1, 0)), "InvalidInput: step 0: send: rank 1 sends to itself")
        self.assertEqual(self.wrong(lambda s: s.send(0, 1, 9)), "InvalidInput: step 0: send: no chunk 9; chunks are 0..3")
        self.assertEqual(self.wrong(lambda s: s.send(0, 1, 2, count=3)), "InvalidInput: step 0: send: no chunk 4; chunks are 0..3")
        self.assertEqual(self.wrong(lambda s: s.reduce(0, 1, 0, count=0)), "InvalidInput: step 0: reduce: 0 chunks; expected at least one")
        self.assertEqual(
            self.wrong(lambda s: s.send(0, 2, 0)),
            "InvalidInput: step 0: send: rank 0 sends to rank 2; no link of ring:4 leads there but through another GPU; hint: two "
            "transfers",
        )
        self.assertEqual(self.wrong(lambda s: s.send(0, [], 0)), "InvalidInput: step 0: no ranks")
        self.assertEqual(self.wrong(lambda s: s.send(0, 1, 0, path=[99])), "InvalidInput: step 0: send: no link 99; links are 0..7")
        self.assertEqual(
            self.wrong(lambda s: s.send(0, 1, 0, path=[])),
            "InvalidInput: step 0: send: a path of 0 links; expected one from a GPU to a GPU",
        )

    def test_of_the_whole(self):
        def early(s):
            s.send(0, 1, 0)
            s.send(1, 2, 0)

        text = self.wrong(early)
        self.assertTrue(text.startswith("WrongSchedule: [S3] step 0: rank 1 sends chunk 0"), text)

        def twice(s):
            s.reduce(0, 1, 0)
            s.step()
            s.reduce(0, 1, 0)

        self.assertIn("[S4] step 1", self.wrong(twice, "ring:2", "allreduce"))
        text = self.wrong(lambda s: None)
        self.assertTrue(text.startswith("WrongSchedule: [S6]"), text)

    def test_all_violations_are_there(self):
        with self.assertRaises(xccl.WrongSchedule) as raised:
            with xccl.Schedule("ring:4", "allgather") as s:
                s.send(0, 1, 0)
        self.assertGreater(len(raised.exception.violations), 1)
        self.assertEqual(list(raised.exception.violations), s.violations())
        self.assertRegex(str(raised.exception), r"\(and \d+ more\)$")

    def test_the_error_of_a_block_stays(self):
        with self.assertRaises(ZeroDivisionError):
            with xccl.Schedule("ring:4", "allgather"):
                1 // 0

    def test_what_is_closed_is_closed(self):
        s = xccl.Schedule("ring:2", "allgather")
        s.send(np.array([0, 1]), np.array([1, 0]), np.array([0, 1]))
        s.close()
        with self.assertRaisesRegex(xccl.UsageError, "^schedule: its writing has ended"):
            s.send(0, 1, 0)
        with self.assertRaisesRegex(xccl.UsageError, "^engine: steers a search"):
            s.plan(engine="ring")

    def test_members_are_ranks_of_the_machine(self):
        with self.assertRaisesRegex(xccl.UsageError, r"^ranks: no rank 7; ranks are 0\.\.3$"):
            xccl.Schedule("ring:4", "allgather", ranks=[0, 7])


class Columns(unittest.TestCase):
    def test_of_a_thousand_ranks_are_not_copied(self):
        plan = xccl.plan("torus:32x32", "allgather", size="64MiB", engine="bfb", lower=False)
        transfers = plan.schedule.transfers
        again = xccl.Plan(plan._c).schedule.transfers
        self.assertGreater(len(transfers), 1000)
        for name in ("step", "src", "dst", "first", "count", "reduce", "path"):
            self.assertFalse(transfers[name].flags.owndata, name)
            self.assertFalse(transfers[name].flags.writeable, name)
            self.assertTrue(np.shares_memory(transfers[name], again[name]), name)

    def test_they_outlive_the_plan(self):
        plan = xccl.plan("ring:8", "allgather", size="1MiB", lower=False)
        column = plan.transfers["src"]
        wanted = column.copy()
        del plan
        gc.collect()
        others = [xccl.plan("ring:8", "allreduce", size="1MiB", lower=False) for _ in range(3)]
        self.assertTrue(np.array_equal(column, wanted))
        del others

    def test_a_compressed_schedule_is_written_out(self):
        plan = xccl.plan("torus:32x32", "allgather", size="64MiB", engine="bfb", lower=False)
        self.assertTrue(plan.schedule.is_compressed)
        plain = plan.schedule.expanded()
        self.assertFalse(plain.is_compressed)
        self.assertEqual(plain.num_transfers, plan.facts["transfers"])
        frame = plain.to_pandas()
        self.assertEqual(len(frame), plain.num_transfers)
        self.assertEqual(frame["src"].nunique(), 1024)


class Collectives(unittest.TestCase):
    def test_chunks_and_holders(self):
        allgather = xccl.Collective("allgather", 3, chunks=2)
        self.assertEqual(allgather.chunk(2, 1), 5)
        self.assertEqual(allgather.before(5), {2: [2]})
        self.assertEqual(allgather.after(5), {0: [2], 1: [2], 2: [2]})
        alltoall = xccl.Collective("alltoall", 3)
        self.assertEqual(alltoall.chunk((1, 2)), 5)
        self.assertEqual(alltoall.after(5), {2: [1]})
        allreduce = xccl.Collective("allreduce", [4, 2])
        self.assertEqual(allreduce.before(0), {4: [4], 2: [2]})
        self.assertEqual(allreduce.after(0), {4: [2, 4], 2: [2, 4]})
        with self.assertRaisesRegex(xccl.UsageError, "^part: no part 3; parts are 0..2$"):
            allgather.chunk(3)
        with self.assertRaisesRegex(xccl.UsageError, "^part: no pair 3>0 in alltoall of 3 ranks$"):
            alltoall.chunk((3, 0))
        with self.assertRaisesRegex(xccl.UsageError, r"^index: part 1 has no chunk 2; it has 0\.\.1$"):
            allgather.chunk(1, 2)
        with self.assertRaisesRegex(xccl.UsageError, r"^chunk: no chunk 6; chunks are 0\.\.5$"):
            allgather.before(6)
        with self.assertRaisesRegex(xccl.UsageError, r"^chunks: 0; expected 1 to 1048576, and 2\^30 in all$"):
            allgather.with_chunks(0)

    def test_of_ones_own(self):
        # Every rank gets the sum of its neighbours' parts.
        n = 4
        before = [(rank, part) for part in range(n) for rank in ((part - 1) % n, (part + 1) % n)]
        after = [(part, part, [(part - 1) % n, (part + 1) % n]) for part in range(n)]
        with self.assertRaises(xccl.XcclError):
            xccl.Collective.custom("sums", n, before, [*after, after[0]])
        sums = xccl.Collective.custom("sums", n, before, after)
        self.assertEqual(sums.num_parts, n)
        self.assertEqual(sums.after(2), {2: [1, 3]})
        plan = xccl.plan("full-mesh:4", sums, size="1MiB")
        self.assertEqual(plan.verify(), [])
