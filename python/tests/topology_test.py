"""Topologies: loaded, built, changed; their columns; errors with the texts of the command line."""

import gc
import pathlib
import tempfile
import unittest
import warnings

import numpy as np

import xccl_synth as xccl

PAIR = """<topology name="pair" source="made up">
  <host name="h0">
    <gpu id="0"/>
    <gpu id="1"/>
    <switch id="sw" multicast="true"/>
    <link from="gpu:*" to="sw" bandwidth="50GB/s" latency="500ns"/>
  </host>
</topology>
"""


class Loading(unittest.TestCase):
    def test_library_short_form_and_file(self):
        self.assertIn("dgx-a100", xccl.library())
        self.assertEqual(xccl.Topology("dgx1").num_ranks, 8)
        self.assertEqual(xccl.Topology("torus:4x4").num_links, 64)
        self.assertEqual(repr(xccl.Topology("ring:4")), "<Topology ring:4: 4 ranks, 1 hosts, 4 nodes, 8 links>")

    def test_links_of_another_tools_file(self):
        with tempfile.TemporaryDirectory() as folder:
            graph = pathlib.Path(folder, "graph.json")
            graph.write_text('{"directed": false, "multigraph": false, "graph": {}, "nodes": [{"id": 0}, {"id": 1}], "links": [{"source": 0, "target": 1}]}')
            with self.assertRaises(xccl.XcclError) as raised:
                xccl.Topology(graph)
            self.assertIn("hint: --link ", str(raised.exception))
            for load in (xccl.Topology, xccl.Topology.import_):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    links = load(graph, link="bandwidth=25GB/s,latency=500ns").links
                self.assertEqual(links["bandwidth_bytes_per_s"].tolist(), [25 * 10**9] * 2)
                self.assertEqual(links["latency_ps"].tolist(), [500_000] * 2)
            with self.assertRaises(xccl.UsageError):
                xccl.Topology(graph, link="speed=1")

    def test_xml_and_back(self):
        topology = xccl.Topology.from_xml(PAIR)
        self.assertEqual(topology, xccl.Topology.from_xml(topology.to_xml()))
        self.assertEqual(topology.source, "made up")

    def test_pictures(self):
        topology = xccl.Topology("dgx1")
        self.assertTrue(topology.to_svg().startswith("<svg "))
        self.assertEqual(topology._repr_svg_(), topology.to_svg())
        self.assertIsNone(xccl.Topology("torus:32x33")._repr_svg_())
        self.assertTrue(topology.to_dot().startswith('digraph "dgx1" {'))

    def test_copies_of_a_host(self):
        self.assertEqual(xccl.Topology("dgx1-full", hosts=2).num_hosts, 2)

    def test_the_hosts_of_a_job(self):
        cluster = xccl.Topology("dgx-h100", hosts=4)
        job = xccl.Topology(cluster, job="h[2,1]")
        self.assertEqual((job.num_hosts, job.nodes["host"][0]), (2, "h2"))
        self.assertEqual(xccl.Topology("dgx-h100", hosts=4, job="h[2,1]"), job)
        with self.assertRaises(xccl.InvalidInput):
            xccl.Topology(cluster, job="h9")

    def test_what_files_leave_out(self):
        with tempfile.TemporaryDirectory() as folder:
            matrix = pathlib.Path(folder, "box.txt")
            matrix.write_text("GPU0 GPU1 NIC0\nGPU0 X NV12 PIX 0-7\nGPU1 NV12 X SYS 0-7\nNIC0 PIX SYS X\n")
            box = xccl.Topology(matrix, gpu_arch="sm80", pcie_gen=4, nic_rate="200Gbit/s", hosts=2)
            self.assertEqual((box.name, box.num_ranks, box.num_hosts), ("2x box", 4, 2))
            dump = pathlib.Path(folder, "flat.xml")
            dump.write_text(
                '<system version="1"><cpu numaid="0"><pci busid="0000:00:16.0"/><pci busid="0000:00:17.0"/></cpu></system>'
            )
            self.assertEqual(xccl.Topology(dump, gpu_busids=["00:17.0"]).num_ranks, 1)
        with self.assertRaises(xccl.UsageError) as raised:
            xccl.Topology("dgx-h100", hosts=2, nvlink_domain=4)
        self.assertEqual(str(raised.exception), "--nvlink-domain 4: expected at least the 8 GPUs of one host")

    def test_import(self):
        with tempfile.TemporaryDirectory() as folder:
            dump = pathlib.Path(folder, "dump.xml")
            dump.write_text(
                '<system version="1"><cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">'
                '<pci busid="0000:01:00.0" class="0x030200" link_speed="8 GT/s" link_width="0"><gpu dev="0" sm="70" rank="0"/></pci>'
                "</cpu></system>"
            )
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                machine = xccl.Topology.import_(dump)
            self.assertEqual([str(warning.message) for warning in told], machine.warnings)
            self.assertGreater(len(told), 0)
            self.assertEqual({(warning.category, warning.filename) for warning in told}, {(xccl.XcclWarning, __file__)})
            native = pathlib.Path(folder, "pair.xml")
            native.write_text(PAIR)
            self.assertEqual(xccl.Topology.import_(native), xccl.Topology(native))
        with self.assertRaisesRegex(xccl.InvalidInput, "^./dgx1: cannot read: No such file or directory$"):
            xccl.Topology.import_("dgx1")

    def test_unknown_names(self):
        with self.assertRaises(xccl.InvalidInput) as raised:
            xccl.Topology("dgx-a10")
        self.assertEqual(
            str(raised.exception), "'dgx-a10': no such file, short form or library machine; did you mean 'dgx-a100'?"
        )

    def test_errors_have_the_place_in_the_file(self):
        with self.assertRaises(xccl.InvalidInput) as raised:
            xccl.Topology.from_xml(PAIR.replace('to="sw"', 'to="swich"'), "pair.xml")
        self.assertRegex(str(raised.exception), r"^pair\.xml:6:\d+: .*swich")


class Building(unittest.TestCase):
    def builder(self):
        builder = xccl.TopologyBuilder("pair", source="made up")
        builder.gpus(2, host="h0")
        builder.switch("sw", host="h0", multicast=True)
        return builder

    def test_equals_the_xml(self):
        builder = self.builder()
        builder.link("gpu:*", "sw", bandwidth="50GB/s", latency="500ns")
        self.assertEqual(builder.build(), xccl.Topology.from_xml(PAIR))

    def test_numbers_and_texts_are_the_same(self):
        builder = self.builder()
        for gpu in (0, 1):
            builder.link(gpu, 2, bandwidth=50e9, latency=500_000)
        self.assertEqual(builder.build(), xccl.Topology.from_xml(PAIR))

    def test_ids_count_by_host(self):
        builder = xccl.TopologyBuilder("two hosts")
        for host in ("a", "b"):
            builder.gpus(2, host=host)
            builder.nic(host=host)
        builder.link("a/0", "b/0", bandwidth="1GB/s")
        builder.link("a/nic0", "b/nic0", bandwidth="1GB/s", duplex=False)
        topology = builder.build()
        self.assertEqual(topology.links["name"].tolist(), ["a/0->b/0", "b/0->a/0", "a/nic0->b/nic0"])

    def wrong(self, make):
        with self.assertRaises(xccl.XcclError) as raised:
            make()
        return f"{type(raised.exception).__name__}: {raised.exception}"

    def test_what_is_wrong_is_named(self):
        builder = self.builder()
        self.assertEqual(self.wrong(lambda: builder.link("gpu:7", "sw", bandwidth="1GB/s"))[:24], "InvalidInput: pair: link")
        self.assertEqual(
            self.wrong(lambda: builder.link(0, 1, bandwidth="50GBs")).split(":")[:2], ["UsageError", " bandwidth"]
        )
        self.assertEqual(
            self.wrong(lambda: builder.link(0, 1, bandwidth=1, latency=0.5)),
            "UsageError: latency: 0.5; expected whole picoseconds, or a text such as 500ns",
        )
        builder.link(0, 9, bandwidth="1GB/s")
        self.assertEqual(self.wrong(builder.build), "InvalidInput: pair: link 0: no node 9; nodes are 0..2")
        self.assertEqual(
            self.wrong(xccl.TopologyBuilder("empty").build), "InvalidInput: empty: no gpu; expected at least one"
        )
        twice = xccl.TopologyBuilder("twice")
        twice.gpu("0")
        twice.gpu("0")
        self.assertEqual(self.wrong(twice.build), "InvalidInput: twice: two nodes named gpu 0; expected ids that differ")


class Columns(unittest.TestCase):
    def test_nodes_and_links(self):
        topology = xccl.Topology.from_xml(PAIR)
        self.assertEqual(topology.nodes["kind"].tolist(), ["gpu", "gpu", "switch"])
        self.assertEqual(topology.nodes["rank"].tolist(), [0, 1, -1])
        self.assertEqual(topology.nodes["multicast"].tolist(), [False, False, True])
        self.assertEqual(topology.links["source"].tolist(), [0, 2, 1, 2])
        self.assertEqual(topology.links["target"].tolist(), [2, 0, 2, 1])
        self.assertEqual(set(topology.links["bandwidth_bytes_per_s"].tolist()), {50_000_000_000})
        self.assertEqual(set(topology.links["latency_ps"].tolist()), {500_000})

    def test_columns_are_read_only_views(self):
        column = xccl.Topology("torus:8x8").links["bandwidth_bytes_per_s"]
        self.assertFalse(column.flags.owndata)
        self.assertFalse(column.flags.writeable)
        self.assertEqual(column.strides, (32,))  # a field of each link

    def test_a_column_outlives_its_topology(self):
        topology = xccl.Topology("torus:8x8")
        column = topology.links["bandwidth_bytes_per_s"]
        wanted = column.copy()
        del topology
        gc.collect()
        others = [xccl.Topology("ring:500") for _ in range(4)]
        self.assertTrue(np.array_equal(column, wanted))
        del others

    def test_table(self):
        links = xccl.Topology("ring:4").links
        self.assertEqual(len(links), 8)
        self.assertEqual(links.keys()[0], "name")
        self.assertEqual(links.row(0)["bandwidth_bytes_per_s"], 50_000_000_000)
        self.assertEqual(len(links.where(links["source"] == 0)), 2)
        self.assertEqual(len(links.to_pandas()), 8)
        with self.assertRaises(KeyError):
            links["speed"]
        self.assertIn("<td>0-&gt;1</td>", links._repr_html_())

    def test_neighbours(self):
        near = xccl.Topology("nvswitch:4").neighbours(1)
        self.assertEqual(near["rank"].tolist(), [0, 2, 3])
        self.assertEqual(len(near["path"][0]), 2)
        with self.assertRaises(xccl.UsageError):
            xccl.Topology("ring:4").neighbours(4)


class Changes(unittest.TestCase):
    def test_without_link(self):
        self.assertEqual(xccl.Topology("ring:4").without_link("0->1").num_links, 7)
        self.assertEqual(xccl.Topology("ring:4").without_link("0<->1", "2->3").num_links, 5)
        with self.assertRaises(xccl.InvalidInput):
            xccl.Topology("ring:4").without_link("0->2")

    def test_degrade(self):
        slow = xccl.Topology("ring:4").degrade("0->1", 0.5)
        self.assertEqual(sorted(slow.links["bandwidth_bytes_per_s"].tolist())[:2], [25_000_000_000, 50_000_000_000])
        with self.assertRaises(xccl.XcclError):
            xccl.Topology("ring:4").degrade("0->1", 1.5)

    def test_submachine(self):
        part = xccl.Topology("torus:4x4").submachine([5, 6, 1])
        self.assertEqual(part.ranks.tolist(), [1, 5, 6])
        self.assertEqual(part.topology.num_links, len(part.links))
        with self.assertRaises(xccl.UsageError):
            xccl.Topology("ring:4").submachine([4])
        with self.assertRaises(xccl.UsageError):
            xccl.Topology("ring:4").submachine([])

    def test_failed_cables(self):
        failed = xccl.Topology("torus:4x4").fail_cables(2, seed=7)
        self.assertEqual(len(failed.cables), 2)
        self.assertEqual(failed.topology.num_links, 60)
        self.assertEqual(failed.cables, xccl.Topology("torus:4x4").fail_cables(2, seed=7).cables)
