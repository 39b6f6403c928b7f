"""Long calls: other threads run meanwhile, and Ctrl-C ends them."""

import os
import signal
import subprocess
import sys
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
