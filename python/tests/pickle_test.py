"""Values as pickles and copies: for pools of processes, joblib, dask and caches."""

import copy
import inspect
import multiprocessing
import pickle
import tempfile
import unittest

import xccl_synth as xccl


def remade(value):
    """The value after a pickle of each protocol that extension types have, and its copies."""
    made = [pickle.loads(pickle.dumps(value, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)]
    return made + [copy.copy(value), copy.deepcopy(value)]


def columns(table):
    return {name: table[name].tolist() for name in table}


def same_transfers(schedule):
    return schedule.num_transfers, schedule.is_compressed, columns(schedule.transfers), schedule.paths


class Pickling(unittest.TestCase):
    def test_topologies(self):
        builder = xccl.TopologyBuilder("pair", source="by hand", gpu_arch="sm90")
        a, b = builder.gpu(), builder.gpu()
        builder.link(a, b, bandwidth=50_000_000_001, latency=333, overhead=7)
        machines = [builder.build()] + [xccl.Topology(name) for name in ("ring:4", "dgx1", "rail-2", "nvswitch:4@bandwidth=1.5GB/s")]
        for machine in machines + [machines[1].degrade("0->1", 0.3), machines[2].without_link("0<->1")]:
            self.assertGreater(len(machine.links), 0)  # tables that are there are made anew
            for other in remade(machine):
                self.assertEqual(other, machine)
                self.assertEqual(other.name, machine.name)
                self.assertEqual(other.source, machine.source)
                self.assertEqual(other.gpu_arch, machine.gpu_arch)
                self.assertEqual(other.warnings, machine.warnings)
                self.assertEqual(columns(other.links), columns(machine.links))

    def test_warnings_stay(self):
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
            file.write(
                '<system version="1"><cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">'
                '<pci busid="0000:01:00.0" class="0x030200" link_speed="8 GT/s" link_width="0"><gpu dev="0" sm="70" rank="0"/></pci>'
                "</cpu></system>"
            )
            file.flush()
            machine = xccl.Topology(file.name)
        self.assertGreater(len(machine.warnings), 0)
        for other in remade(machine):
            self.assertEqual(other.warnings, machine.warnings)

    def test_collectives(self):
        for collective in (
            xccl.Collective("allreduce", 4, chunks=3),
            xccl.Collective("broadcast", [5, 2, 9], root=2),
            xccl.Collective("allgatherv", 3, counts=[1, 0, 7]),
            xccl.Collective("alltoallv", 2, counts=[[0, 3], [1, 2]]),
            xccl.Collective("sendrecv", 4, pairs=[(0, 1), (3, 2)]),
            xccl.Collective.custom("of mine", 3, [(0, 0), (1, 1)], [(2, 0), (2, 1, [1])], weights=[3, 5]),
            xccl.plan("ring:4", "allgather", size="1MiB", engine="forest").collective,
        ):
            for other in remade(collective):
                self.assertEqual(other, collective)
                self.assertEqual(columns(other.chunks), columns(collective.chunks))
                self.assertEqual(other.ranks.tolist(), collective.ranks.tolist())

    def test_schedules(self):
        with xccl.Schedule("ring:2", "allgather") as written:
            with self.assertRaises(xccl.UsageError) as raised:
                pickle.dumps(written)
            self.assertEqual(str(raised.exception), "schedule: it is being written; expected its end, close(), before a copy")
            written.send(0, 1, 0)
            written.send(1, 0, 1)
        planned = xccl.plan("torus:4x4", "allgather", size="1MiB", lower=False).schedule
        for schedule in (written, planned):
            for other in remade(schedule):
                self.assertEqual(same_transfers(other), same_transfers(schedule))
                self.assertEqual(other.topology, schedule.topology)
                self.assertEqual(other.collective, schedule.collective)
                self.assertEqual(other.violations(), [])

    def test_plans(self):
        for plan in (
            xccl.plan("ring:4", "allgather", size="1MiB"),
            xccl.plan("torus:4x4", "allreduce", size="64KiB", lower=False),
            xccl.plan("dgx-h100", "allreduce", size="1MiB", engine="multicast"),
            xccl.plan("ring:4", "broadcast", size="1MiB", ranks=[0, 2], root=2),
            xccl.plan("ring:2", "allgather", ranks=[1], size="1MiB"),
        ):
            for other in remade(plan):
                self.assertEqual(other.facts, plan.facts)
                self.assertEqual(str(other), str(plan))
                self.assertEqual(same_transfers(other.schedule), same_transfers(plan.schedule))
                self.assertEqual(other.interrupted, plan.interrupted)
                self.assertEqual(other.verify(), [])
                self.assertEqual(columns(other.simulate("4KiB")), columns(plan.simulate("4KiB")))

    def test_programs(self):
        program = xccl.plan("ring:4", "allreduce", size="1MiB").program
        for other in remade(program):
            self.assertEqual(columns(other.instructions), columns(program.instructions))
            self.assertEqual(columns(other.connections), columns(program.connections))

    def test_a_pool_of_processes_plans(self):
        for method in ("fork", "spawn"):
            with multiprocessing.get_context(method).Pool(2) as pool:
                plans = pool.starmap(xccl.plan, [("ring:4", "allreduce"), (xccl.Topology("ring:5"), "allgather")])
            self.assertEqual([plan.facts["topology"] for plan in plans], ["ring:4", "ring:5"])
            self.assertEqual([plan.verify() for plan in plans], [[], []])

    def test_what_a_pool_raises(self):
        with multiprocessing.get_context("fork").Pool(1) as pool:
            with self.assertRaises(xccl.InvalidInput):
                pool.apply(xccl.plan, ("no-such-machine", "allreduce"))
        wrong = xccl.WrongSchedule("text")
        wrong.violations = (xccl.Violation(("S3", "step 1", "seen")),)
        self.assertEqual(copy.deepcopy(wrong).violations, wrong.violations)

    def test_all_public_classes(self):
        machine = xccl.Topology("ring:4")
        plan = xccl.plan(machine, "allgather", size="1MiB", engine="ring")
        builder = xccl.TopologyBuilder("pair")
        builder.gpus(2)
        builder.link(0, 1, bandwidth="1GB/s")
        stop = xccl.Stop()
        stop.ask()
        compared = xccl.compare(machine, "allgather", "1KiB", engines=["ring", "bfb"], others={"mine": plan})
        with tempfile.TemporaryDirectory() as folder:
            nccl = xccl.book("dgx-h100", folder, "allgather", "64KiB", engine="ring")
        values = {
            "Book": (xccl.Book({"file": ["a"]}, "book", "hopper"), lambda book: (columns(book), book.path, book.machine)),
            "Bound": (plan.bound, repr),
            "Collective": (plan.collective, repr),
            "Comparison": (compared, lambda table: (columns(table), table.view(), table.to_svg(), table.plan("mine").facts, table.explain())),
            "ExpertPlan": (
                xccl.plan(machine, "dispatch", experts=8, top_k=2, tokens=16, row="64B", draws=2),
                lambda experts: (experts.facts, experts.to_svg()),
            ),
            "Failed": (machine.fail_cables(1), lambda failed: (failed.topology.to_xml(), failed.cables)),
            "Front": (
                xccl.pareto(machine, "allgather", size="1MiB", chunks=1, steps=3),
                lambda front: (columns(front), front.complete, [point.facts for point in front.plans]),
            ),
            "NcclBook": (nccl, lambda book: (columns(book), book.tuner_table, book.tuner_rows)),
            "Plan": (plan, lambda plan: (plan.facts, plan.explain())),
            "Program": (plan.program, lambda program: columns(program.instructions)),
            "Schedule": (plan.schedule, same_transfers),
            "Stop": (stop, lambda stop: stop.asked),
            "Submachine": (machine.submachine([0, 1]), lambda part: (part.topology.to_xml(), part.ranks.tolist(), part.links.tolist())),
            "Sweep": (xccl.sweep(machine, "allgather", "1KiB", "ring"), str),
            "Table": (machine.links, columns),
            "Topology": (machine, lambda machine: machine.to_xml()),
            "TopologyBuilder": (builder, lambda builder: builder.build().to_xml()),
            "Violation": (xccl.Violation(("S3", "step 1", "seen")), lambda found: (found.rule, str(found))),
        }
        classes = {name for name in xccl.__all__ if inspect.isclass(getattr(xccl, name)) and not issubclass(getattr(xccl, name), BaseException)}
        self.assertEqual(set(values), classes)
        for name, (value, seen) in values.items():
            with self.subTest(name):
                self.assertIs(type(value), getattr(xccl, name))
                for other in remade(value):
                    self.assertIs(type(other), type(value))
                    self.assertEqual(seen(other), seen(value))

    def test_errors(self):
        for name in xccl.__all__:
            kind = getattr(xccl, name)
            if inspect.isclass(kind) and issubclass(kind, BaseException):
                other = pickle.loads(pickle.dumps(kind("place: seen")))
                self.assertEqual((type(other), str(other)), (kind, "place: seen"))

    def test_results(self):
        for table in (
            xccl.compare("ring:4", "allgather", "1KiB", engines=["ring"]),
            xccl.pareto("ring:4", "allgather", size="1MiB", chunks=1, steps=2),
            xccl.plan("ring:4", "allgather", size="1MiB").moves(),
        ):
            for other in remade(table):
                self.assertIs(type(other), type(table))
                self.assertFalse(any(other[name].flags.writeable for name in other))
                self.assertEqual(str(other), str(table))

    def test_a_cut_pickle_is_an_error(self):
        state = xccl.plan("ring:4", "allgather", size="1MiB")._c.__getstate__()
        made = type(xccl.plan("ring:4", "allgather", size="1MiB")._c)
        broken = made.__new__(made)
        with self.assertRaises(xccl.InvalidInput):
            broken.__setstate__((state[0][:-3], *state[1:]))
        with self.assertRaises(xccl.InvalidInput):
            broken.__setstate__(state[:-1])
