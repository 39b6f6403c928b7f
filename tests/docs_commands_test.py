"""Runs the commands of the pages with the built xccl-synth and compares what they print with what the pages show.

A block of a page that names no language is a shell's. It is a list of commands, or a session, in which every command has `$ ` before
it and what it prints to standard output below it. The commands of a page run in order, in one folder that has nothing but the
clone's examples/ and tools/quickstart. `<!-- file NAME -->` before a block of any language writes the block to that file. Commands
that cannot run here are listed in NOT_RUN with the reason.

In what a page shows, a line `...` stands for any lines, and `...` within a line for any text. Figures that VARIES marks are not
compared. XCCL_DOCS_DIR=$PWD bazel run //tests:docs_commands_test rewrites what the pages of the tree show.
"""

import concurrent.futures
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import typing
import unittest

# docs/python.md has a test of its own, python/tests/docs_test.py.
PAGES = ["README.md", "CONTRIBUTING.md", "examples/README.md"] + sorted(
    str(page) for page in pathlib.Path("docs").rglob("*.md") if page.name != "python.md"
)

# Commands whose text, without its comment, has such a part are not run.
NOT_RUN = {
    r"^bazel |&& bazel |bazel-bin/": "builds the tree",
    r"^tools/(?!quickstart)": "installs, builds, or tests the tree",
    r"^export ": "for the programs below it",
    r"\b(mpirun|mpiexec|srun|sbatch|torchrun|flux)\b": "needs a launcher; tools/net/check_launchers.py and tests/sweep_mpi_test.cc have one",
    r"--address|\.xccl-token": "needs hosts; tools/net/check_hosts.py has them",
    r"--backend cuda": "needs a GPU; tools/gpu_check is for a machine that has one",
    r"--arch sm_": "needs nvcc; tests/nvcc_test.cc runs it where there is one",
    r"topo\.xml|\./all_reduce_perf|--with all_reduce_perf|\./nccl_perf|\./my_job": "needs NCCL, or files that it writes",
    r"\./allreduce": "needs the installed library; tests/install_test.sh has it",
    r"\| neato": "needs Graphviz",
    r"AstraSim": "needs ASTRA-sim",
    r"sweep examples/sweep\.txt": "takes 20 s; tests/cli_sweep_test.cc runs smaller lists",
    r"tune .*--root all": "takes 90 s",
    r"examples/llama70b\.sh": "takes 15 s",
    r"plan rail-8 --for": "takes 15 s; docs/training.md has a smaller one",
}

# The beginnings of the commands that are run.
RUNS = ("xccl-synth ", "cut ", "printf ", "python3 examples/", "tools/quickstart")

# Groups are figures that differ from run to run: what a clock measured. Simulated times are not among them.
VARIES = [
    re.compile(r"^ *synthesis +([\d.]+) s of ([\d.]+) s in all"),
    re.compile(r"^planned in ([\d.]+) s$"),
    re.compile(r"^ +\d+ +\d+ +\d+ +[\d/]+ +[\d/]+ +\S+ +\S+ +([\d.]+)$"),  # a point of --pareto
    # A row of `run`: measured times and bandwidths, out of place and in place.
    re.compile(r"^ *\d+ +\d+ +\w+ +\w+ +-?\d+ +([\d.]+) +([\d.]+) +([\d.]+) +\d+ +([\d.]+) +([\d.]+) +([\d.]+) +\d+ +[\d.]+$"),
    re.compile(r"^# Avg bus bandwidth +: ([\d.]+)"),
    re.compile(r"^# Spread of the times +: up to (\d+) %"),
]

SECONDS = 300  # that a command may take at most


class Command(typing.NamedTuple):
    line: int  # line of the page, from 0
    text: str
    shown: list[str] | None  # None: not in a session
    first: int  # first of the lines below the command
    last: int  # exclusive


class Block(typing.NamedTuple):
    language: str
    file: str | None
    first: int
    last: int  # exclusive: the line of the closing fence


def blocks(lines):
    first = None
    for number, line in enumerate(lines):
        fence = re.fullmatch(r"```(\w*)", line)
        if first is None and fence:
            named = re.fullmatch(r"<!-- file (\S+) -->", lines[number - 1]) if number else None
            first, language, file = number + 1, fence[1], named and named[1]
        elif fence:
            yield Block(language, file, first, number)
            first = None
    assert first is None, f"line {first}: a block without an end"


def continues(text):
    """Whether a command goes on with the next line."""
    document = re.search(r"<<'(\w+)'", text)
    return text.endswith("\\") or (document and not text.endswith("\n" + document[1]))


def commands(lines, block):
    """The commands of a block without a language."""
    prompt = re.compile(r"\w*\$ ")
    session = any(prompt.match(line) for line in lines[block.first : block.last])
    number = block.first
    while number < block.last:
        start, text = number, lines[number]
        number += 1
        if session:
            assert prompt.match(text), f"line {start + 1}: '{text}'; expected '$ ' and a command"
            text = text[prompt.match(text).end() :]
        elif not text or text.startswith("#"):
            continue
        while continues(text) and number < block.last:
            text += "\n" + lines[number]
            number += 1
        first = number
        while session and number < block.last and not prompt.match(lines[number]):
            number += 1
        last = number
        while last > first and not lines[last - 1]:
            last -= 1
        yield Command(start, text, lines[first:last] if session else None, first, last)


def why_not_run(text):
    plain = re.sub(r"\s#\s.*", "", text)
    return next((part for part in NOT_RUN if re.search(part, plain)), None)


def masked(line):
    """A line without figures that vary, and without the blanks that align them."""
    for pattern in VARIES:
        if found := pattern.search(line):
            for group in range(len(found.groups()), 0, -1):
                line = line[: found.start(group)] + "~" + line[found.end(group) :]
            return re.sub(" +", " ", line.strip())
    return line.rstrip()


def any_lines(line):
    return line.strip() in ("...", "…")


def fits(shown, printed):
    pattern = ""
    for line in shown:
        parts = re.split(r"\.\.\.|…", masked(line))
        pattern += "(?:.*\n)*" if any_lines(line) else ".*".join(re.escape(part) for part in parts) + "\n"
    return re.fullmatch(pattern, "".join(masked(line) + "\n" for line in printed)) is not None


def rewritten(shown, printed):
    """What a page is to show. Where it left lines out, it leaves out those that are least like the ones that it had."""
    if fits(shown, printed):
        return shown
    runs = [[]]
    for line in shown:
        runs.append([]) if any_lines(line) else runs[-1].append(line)
    if len(runs) == 1:
        return printed
    result, at = [], 0
    for place, run in enumerate(runs):
        starts = range(at, len(printed) - len(run) + 1)
        if not run or not starts:
            start = at
        elif place == 0:
            start = 0
        elif place == len(runs) - 1:
            start = len(printed) - len(run)
        else:
            start = max(starts, key=lambda i: difflib.SequenceMatcher(None, "\n".join(run), "\n".join(printed[i : i + len(run)])).ratio())
        result += (["..."] if place else []) + printed[start : start + len(run)]
        at = start + len(run)
    return result


def run(command, folder, env):
    """What a command prints to standard output, as lines, and what is wrong with it."""
    if not command.text.startswith(RUNS):
        return [], "neither run nor listed in NOT_RUN"
    done = subprocess.run(
        ["bash", "-c", command.text], cwd=folder, env=env, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL
    )
    printed = [line.rstrip() for line in done.stdout.rstrip("\n").split("\n")] if done.stdout else []
    return printed, f"exits with {done.returncode}: {done.stderr.strip()}" if done.returncode != 0 else None


def run_page(page):
    """Runs the commands of a page; what is wrong, a text for each. With XCCL_DOCS_DIR, rewrites the page."""
    lines = pathlib.Path(page).read_text().split("\n")
    wrong, changes = [], []
    with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as scratch:
        folder, tools = pathlib.Path(scratch, "folder"), pathlib.Path(scratch, "bin")
        shutil.copytree("examples", folder / "examples", symlinks=False)
        (folder / "tools").mkdir()
        for script in ("quickstart", "packages.sh"):
            shutil.copy(pathlib.Path("tools", script), folder / "tools")
        tools.mkdir()
        (tools / "xccl-synth").symlink_to(pathlib.Path("cli/xccl-synth").absolute())
        env = dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}", HOME=scratch, XCCL_SYNTH=str(tools / "xccl-synth"))
        for block in blocks(lines):
            if block.file:
                (folder / block.file).write_text("".join(line + "\n" for line in lines[block.first : block.last]))
            for command in commands(lines, block) if not block.language else []:
                if why_not_run(command.text):
                    continue
                printed, fault = run(command, folder, env)
                if fault:
                    wrong.append(f"{page}:{command.line + 1}: {command.text}\n{fault}")
                elif command.shown is not None and not fits(command.shown, printed):
                    changes.append((command, printed))
    if "XCCL_DOCS_DIR" in os.environ:
        for command, printed in reversed(changes):
            lines[command.first : command.last] = rewritten(command.shown, printed)
        pathlib.Path(os.environ["XCCL_DOCS_DIR"], page).write_text("\n".join(lines))
        return wrong
    for command, printed in changes:
        change = difflib.unified_diff(command.shown, printed, "shown", "printed", lineterm="")
        wrong.append("\n".join([f"{page}:{command.line + 1}: {command.text}", *change]))
    return wrong


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pool = concurrent.futures.ThreadPoolExecutor(max_workers=2)
        cls.wrong = {page: cls.pool.submit(run_page, page) for page in PAGES}

    @classmethod
    def tearDownClass(cls):
        cls.pool.shutdown()

    def check(self, page):
        wrong = self.wrong[page].result()
        self.assertEqual(wrong, [], "\n\n" + "\n\n".join(wrong))

    def test_listed_commands_are_on_pages(self):
        used = set()
        for page in PAGES:
            lines = pathlib.Path(page).read_text().split("\n")
            for block in blocks(lines):
                used |= {why_not_run(command.text) for command in commands(lines, block)} if not block.language else set()
        self.assertEqual(set(NOT_RUN) - used, set())

    def test_checks_shown_are_those_of_tools_check(self):
        check = pathlib.Path("tools/check").read_text()
        for page in ("README.md", "CONTRIBUTING.md"):
            shown = re.findall(r"^ok +(.*?)(?:: N cases, 0 failed)? \(N s\)$", pathlib.Path(page).read_text(), re.MULTILINE)
            self.assertGreater(len(shown), 2, page)
            self.assertEqual([name for name in shown if f'"{name}"' not in check], [], page)

    def test_gains_of_readme_are_those_printed(self):
        readme = " ".join(pathlib.Path("README.md").read_text().split())
        for gain in (r"([\d.]+) times as fast as the best ring", r"([\d.]+) times as fast as the best tree", r"within (\d+) % of the bound"):
            self.assertEqual(len(set(re.findall(gain, readme))), 1, gain)
            self.assertGreater(len(re.findall(gain, readme)), 1, gain)
        for page, size, gain in (
            ("examples/README.md", "64MiB", r"([\d.]+) times as fast as what NCCL"),
            ("docs/nccl.md", "1KiB", r"([\d.]+) times at 1 KiB"),
            ("docs/nccl.md", "64KiB", r"([\d.]+) times at 64 KiB"),
            ("docs/nccl.md", "4MiB", r"([\d.]+) times at 4 MiB"),
        ):
            printed = re.search(rf"^allreduce +{size} .* ([\d.]+)  allreduce-", pathlib.Path(page).read_text(), re.MULTILINE)
            self.assertEqual(re.search(gain, readme)[1], f"{float(printed[1]):.1f}", (page, size))

    def test_blocks_are_fenced(self):
        for page in PAGES:
            lines = pathlib.Path(page).read_text().split("\n")
            inside = {number for block in blocks(lines) for number in range(block.first, block.last)}
            for number, line in enumerate(lines):
                if number not in inside and line.startswith("    ") and not lines[number - 1]:
                    self.fail(f"{page}:{number + 1}: a block that is indented; expected one between fences")

    def test_examples_are_listed(self):
        table = pathlib.Path("examples/README.md").read_text()
        files = [file.name for file in pathlib.Path("examples").iterdir() if file.is_file() and file.suffix not in (".md", ".bazel")]
        self.assertEqual([name for name in files if f"| [{name}]({name}) | " not in table], [])
        self.assertGreater(len(files), 10)

    def test_the_cluster_is_what_its_tool_writes(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["tools/made_up_cluster", folder], check=True)
            for file in pathlib.Path(folder).iterdir():
                self.assertEqual(pathlib.Path("examples/cluster", file.name).read_text(), file.read_text(), file.name)

    def test_what_fits(self):
        for shown, printed, expected in [
            (["a b"], ["a b"], True),
            (["a b"], ["a c"], False),
            (["a ... d"], ["a b c d"], True),
            (["a", "...", "d"], ["a", "b", "c", "d"], True),
            (["a", "...", "d"], ["a", "b", "c"], False),
            (["  synthesis  1 s of 2 s in all"], ["  synthesis  0.03 s of 4 s in all"], True),
            ([], ["a"], False),
        ]:
            self.assertEqual(fits(shown, printed), expected, (shown, printed))
        self.assertEqual(rewritten(["a 1", "...", "d 1"], ["a 2", "b", "c", "d 2"]), ["a 2", "...", "d 2"])


for page in PAGES:
    name = "test_page_" + re.sub(r"\W", "_", page.removesuffix(".md"))
    setattr(Pages, name, lambda self, page=page: self.check(page))
