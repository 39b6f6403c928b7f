"""Long calls: other threads run meanwhile, and Ctrl-C ends them."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import xccl_synth as xccl

# A search that soon has a plan, and then looks for better ones for a quarter of a minute or more.
LONG = dict(topology="dgx1", collective="allreduce", engine="smt", size="1MiB", lower=False)


class Interrupts(unittest.TestCase):
    def after(self, seconds, do):
        timer = threading.Timer(seconds, do)
        self.addCleanup(timer.cancel)
        timer.start()

    def test_ctrl_c_gives_the_best_so_far(self):
        self.after(1, lambda: os.kill(os.getpid(), signal.SIGINT))
        plan = xccl.plan(**LONG)
        self.assertTrue(plan.interrupted)
        self.assertEqual(plan.verify(), [])

    def test_a_search_that_is_ended_has_its_best_so_far(self):
        asked = xccl.Stop()
        asked.ask()
        for engine in ("auto", "greedy"):
            whole, ended = (
                xccl.plan("fat-tree:k=4", "allreduce", engine=engine, size="1MiB", stop=stop) for stop in (None, asked)
            )
            self.assertEqual(ended.verify(), [], engine)
            self.assertGreaterEqual(ended.time_ps, whole.time_ps, engine)
            self.assertLess(ended.facts["synthesis_s"], whole.facts["synthesis_s"], engine)

    def test_ctrl_c_ends_auto_after_an_engine(self):
        self.after(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
        plan = xccl.plan("torus:24x24", "allreduce", size="64MiB", lower=False)
        self.assertTrue(plan.interrupted)
        self.assertEqual(plan.verify(), [])

    def test_ctrl_c_ends_a_front_with_its_points(self):
        self.after(1, lambda: os.kill(os.getpid(), signal.SIGINT))
        front = xccl.pareto("dgx1", "broadcast", size="1MiB")
        self.assertTrue(front.interrupted)
        self.assertEqual((front.complete, front.stopped), (False, "Ctrl-C"))
        self.assertTrue(all(plan.verify() == [] for plan in front.plans))

    def test_ctrl_c_gives_up_what_has_no_best(self):
        self.after(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
        with tempfile.TemporaryDirectory() as folder:
            book = pathlib.Path(folder) / "book"
            with self.assertRaises(KeyboardInterrupt):
                xccl.tune("full-mesh:4", book, iters=1000)
            self.assertFalse((book / "index.json").exists())

    def test_a_stage_that_overruns_its_time_is_given_up(self):
        with self.assertRaises(xccl.LimitReached) as raised:
            xccl.plan("torus:20x20", "alltoall", engine="greedy", lower=False, time_limit=0.1)
        self.assertEqual(
            str(raised.exception), "--time-limit=0.1s passed; no result until then; hint: a longer time_limit"
        )

    def test_another_thread_ends_a_search(self):
        stop = xccl.Stop()
        self.after(1, stop.ask)
        plan = xccl.plan(**LONG, stop=stop)
        self.assertTrue(stop.asked)
        self.assertFalse(plan.interrupted)
        self.assertEqual(plan.verify(), [])

    def test_other_threads_run_meanwhile(self):
        counted = []
        done = threading.Event()

        def count():
            while not done.wait(0.01):
                counted.append(1)

        thread = threading.Thread(target=count)
        thread.start()
        stop = xccl.Stop()
        self.after(1, stop.ask)
        xccl.plan(**LONG, stop=stop)
        done.set()
        thread.join()
        self.assertGreater(len(counted), 10)

    def test_ctrl_c_ends_a_comparison_after_a_size(self):
        pressed = []

        def progress(said):
            if not pressed:
                pressed.append(said)
                os.kill(os.getpid(), signal.SIGINT)

        sizes = "1KiB:1GiB:x2"
        compared = xccl.compare("torus:4x4", "allreduce", sizes, engines=["auto"], progress=progress)
        self.assertTrue(compared.interrupted)
        self.assertIn(1024, compared["size_bytes"].tolist())
        self.assertLess(len(compared), 21)
        self.assertEqual(compared.left_out, ["the sizes that follow: stopped"])

    def test_ctrl_c_ends_a_sweep(self):
        def progress(said):
            if said == "2 of 40":
                os.kill(os.getpid(), signal.SIGINT)

        table = xccl.sweep("torus:4x4", "allreduce", [1 << 20] * 40, progress=progress)
        self.assertTrue(table.interrupted)
        self.assertGreaterEqual(len(table), 2)
        self.assertLess(len(table), 40)

    def test_the_end_of_a_program_waits_for_what_was_left(self):
        script = (
            "import os, signal, threading, xccl_synth as xccl\n"
            "press = lambda: os.kill(os.getpid(), signal.SIGINT)\n"
            "for after in (0.3, 0.6): threading.Timer(after, press).start()\n"
            "try:\n"
            "    xccl.compare('torus:16x16', 'alltoall', '64MiB', engines=['flow', 'greedy', 'auto'])\n"
            "except KeyboardInterrupt: print('given up')\n"
        )
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
        self.assertEqual((ran.returncode, ran.stdout), (0, "given up\n"), ran.stderr)
