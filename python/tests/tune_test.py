"""Plan books: measured on threads, and beside NCCL's model."""

import pathlib
import tempfile
import unittest

import xccl_synth as xccl


class Books(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "book"

    def test_tune_measures_and_keeps_plans(self):
        said = []
        book = xccl.tune("full-mesh:2", self.path, "allreduce,broadcast", "1KiB,1MiB", roots="all", iters=1, progress=said.append)
        self.assertEqual(book["collective"].tolist(), ["allreduce"] * 2 + ["broadcast"] * 4)
        self.assertEqual(book["root"].tolist(), [-1, -1, 0, 0, 1, 1])
        self.assertEqual(book["size_bytes"].tolist(), [1 << 10, 1 << 20] * 3)
        self.assertTrue((book["time_us"] > 0).all())
        trusted = book.machine == "measured on CPU threads"
        self.assertTrue(trusted or "the model is not reliable" in book.machine, book.machine)
        self.assertEqual((self.path / "machine.json").exists(), trusted)
        self.assertEqual(said, ["1 of 3 collectives", "2 of 3 collectives", "3 of 3 collectives"])
        self.assertTrue((self.path / "index.json").exists())
        for file in book.files:
            self.assertEqual(book.plan(file).verify(), [])

    def test_tune_by_a_given_machine(self):
        book = xccl.tune("full-mesh:2", self.path, ["allgather"], 4096, iters=1, machine="none")
        self.assertEqual(len(book), 1)

    def test_book_beside_nccl(self):
        book = xccl.book("dgx-h100", self.path, "allreduce", "1MiB,64MiB", least_gain=1)
        self.assertEqual(len(book), 2)
        self.assertTrue(((book["gain"] >= 1) == book["kept"]).all())
        self.assertEqual(book["kept"].sum(), sum(file != "" for file in book["file"]))
        self.assertTrue(pathlib.Path(book.tuner_table).exists())

    def test_what_is_wrong_is_named_and_leaves_nothing(self):
        for make, said in (
            (lambda: xccl.book("ring:4", self.path), "ring:4: "),
            (lambda: xccl.book("dgx-h100", self.path, least_gain=0.5), "least_gain: 0.5; expected 1 or more"),
            (lambda: xccl.tune("full-mesh:2", self.path, iters=0), "iters: 0; expected at least 1"),
            (lambda: xccl.tune("full-mesh:2", self.path, roots="0,1"), "roots: '0,1'; expected ranks, or all"),
            (lambda: xccl.tune("full-mesh:2", self.path, size=3), "size: not for a book; "),
            (lambda: xccl.tune("full-mesh:2", self.path, sizes=[]), "sizes: none; expected at least one"),
            (lambda: xccl.tune("full-mesh:1", self.path, ["allgather"], 4096), "full-mesh:1: "),
        ):
            with self.assertRaises(xccl.XcclError) as raised:
                make()
            self.assertTrue(str(raised.exception).startswith(said), str(raised.exception))
            self.assertFalse(self.path.exists(), said)
