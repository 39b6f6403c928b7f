"""docs/benchmarks.md is made by commands that exist, and bench/page puts what commands print in the place of their blocks."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

HERE = pathlib.Path("bench")


def block(command, text):
    return f"<!-- made by: {command} -->\n{text}<!-- end -->\n"


class Page(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(self.folder.cleanup)
        self.page = pathlib.Path(self.folder.name, "page.md")

    def make(self, text, *flags):
        self.page.write_text(text)
        return subprocess.run([HERE / "page", *flags, self.page], capture_output=True, text=True)

    def test_commands_exist(self):
        listed = subprocess.run([HERE / "page", "--list", "docs/benchmarks.md"], capture_output=True, text=True, check=True)
        commands = listed.stdout.splitlines()
        self.assertGreater(len(commands), 10)
        programs = set(re.findall(r'^    name = "([\w-]+)"', pathlib.Path("bench/BUILD.bazel").read_text(), re.M))
        for command in commands:
            for package, name in re.findall(r"//([\w/]+):([\w-]+)", command):
                self.assertTrue((package, name) == ("cli", "xccl-synth") or package == "bench" and name in programs, command)
            if not (first := command.split()[0]).startswith("//"):
                self.assertTrue(os.access(first, os.X_OK), command)

    def test_what_a_command_prints_takes_the_place_of_its_block(self):
        done = self.make("# Head\n\n" + block("printf '| a |\\n'", "old\n") + "\nProse.\n")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(
            self.page.read_text(),
            r"\A# Head\n\n<!-- made by: printf '\| a \|\\n' -->\n\n"
            r"\*`printf '\| a \|\\n'`, \d{4}-\d\d-\d\d, commit \S+, \d+ cores of .+\*\n\n\| a \|\n\n<!-- end -->\n\nProse.\n\Z",
        )
        self.assertEqual(os.listdir(self.folder.name), ["page.md"])

    def test_commands_that_fail_leave_their_blocks_and_are_named(self):
        text = block("echo no bench >&2; false", "one\n") + block("echo 'skipped: no GPU'; exit 77", "two\n")
        done = self.make(text + block("echo three", ""))
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "left as they were: echo no bench >&2; false\n")
        self.assertIn("\nfailed: no bench\n", done.stdout)
        self.assertIn("\nskipped: no GPU\n", done.stdout)
        self.assertTrue(self.page.read_text().startswith(text))
        self.assertIn("\n\nthree\n\n<!-- end -->\n", self.page.read_text())

    def test_a_skipped_command_is_no_failure(self):
        text = block("echo no mpirun >&2; exit 77", "old\n")
        done = self.make(text)
        self.assertEqual((done.returncode, done.stdout.splitlines()[1]), (0, "skipped: no mpirun"))
        self.assertEqual(self.page.read_text(), text)

    def test_only_makes_the_blocks_with_a_text(self):
        done = self.make(block("echo one", "") + block("echo two", "old\n"), "--only", "one")
        self.assertEqual(done.stdout, "echo one\n")
        self.assertTrue(self.page.read_text().endswith(block("echo two", "old\n")))

    def test_a_block_without_an_end_is_refused(self):
        text = "<!-- made by: echo one -->\n" + block("echo two", "")
        done = self.make(text)
        self.assertEqual((done.returncode, done.stderr), (1, f"{self.page}: a block without an end; expected <!-- end -->\n"))
        self.assertEqual(self.page.read_text(), text)
