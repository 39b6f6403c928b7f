"""Runs xccl-synth as a user would, in a folder of its own, and holds every command to what all commands promise.

Shell.run returns what a command printed, or raises Fault: where a signal ended it, where its exit code is none of 0, 1, 2, 3 and 5,
where it fails without saying why in the form that errors have, and where it takes more time or memory than it may.
"""

import json
import os
import pathlib
import re
import resource
import select
import shlex
import signal
import subprocess
import time
import typing

CODES = (0, 1, 2, 3, 5)
CPU_SECONDS = 60  # limit of one command
WALL_SECONDS = 900  # limit of one command, for commands that wait for ever
MEMORY_BYTES = 3 << 30
# The time that a command may take beyond its --time-limit: half a second until the watchdog ends it, and more on a loaded
# machine.
LATE_SECONDS = 5

# Texts that the program prints only if it has a fault.
NEVER = re.compile(
    r"check failed|\bbug\b|unexpected exception|AddressSanitizer|runtime error:|terminate called|std::|Assertion"
)


class Fault(Exception):
    """`kind` names what is wrong without figures, so that it stays the same while a request is made smaller."""

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind, self.text = kind, text


class Done(typing.NamedTuple):
    words: tuple
    code: int  # negative: the signal that ended it
    out: str
    err: str
    cpu_s: float
    wall_s: float
    peak_bytes: int

    def json(self):
        try:
            return json.loads(self.out)
        except ValueError as error:
            raise Fault(f"{self.words[0]}: no JSON", f"{error}: {self.out[:200]!r}") from error


def error_line(err):
    """The line of standard error that says why a command failed; None where there is none."""
    lines = [line for line in err.splitlines() if line.startswith("xccl-synth: ")]
    return lines[-1].removeprefix("xccl-synth: ") if lines else None


def failed_check(err):
    """The place of a check that failed, which tells one abort from another; "" where there is none."""
    found = re.search(r"(\S+?):\d+: check failed", err)
    return f" in {found[1]}" if found else ""


def seconds_of(words):
    """What --time-limit says, None without it."""
    for flag, value in zip(words, words[1:]):
        if flag == "--time-limit" and (given := re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s)", value)):
            return float(given[1]) / (1000 if given[2] == "ms" else 1)
    return None


class Shell:
    """The commands of one request, in one folder."""

    def __init__(self, binary, folder, cpu_seconds=CPU_SECONDS, memory_bytes=MEMORY_BYTES):
        self.binary, self.folder = os.path.abspath(binary), pathlib.Path(folder)
        self.cpu_seconds, self.memory_bytes = cpu_seconds, memory_bytes
        self.done = []
        # Nothing of this machine that a command might read: no launcher, no terminal.
        self.env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "TMPDIR": str(folder), "LANG": "C.UTF-8"}

    def write(self, name, text):
        data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
        (self.folder / name).write_bytes(data)

    def read(self, name):
        return (self.folder / name).read_text(encoding="utf-8", errors="surrogateescape")

    def log(self):
        """The commands so far, as a shell takes them."""
        return [shlex.join(("xccl-synth",) + done.words) for done in self.done]

    def start(self, words):
        """Runs the program and returns (exit code or -signal, usage, wall seconds)."""
        with open(self.folder / "out", "wb") as out, open(self.folder / "err", "wb") as err:
            began = time.monotonic()
            process = subprocess.Popen(
                [self.binary, *words], stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=self.folder, env=self.env
            )
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (self.cpu_seconds, self.cpu_seconds + 5))
        resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))
        ended = os.pidfd_open(process.pid)
        try:
            if not select.select([ended], [], [], WALL_SECONDS)[0]:
                process.send_signal(signal.SIGKILL)
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            os.close(ended)
        process.returncode = os.waitstatus_to_exitcode(status)
        return process.returncode, usage, time.monotonic() - began

    def run(self, *words, check=True):
        words = tuple(str(word) for word in words)
        code, usage, wall_s = self.start(words)
        done = Done(
            words, code, self.read("out"), self.read("err"), usage.ru_utime + usage.ru_stime, wall_s, usage.ru_maxrss * 1024
        )
        self.done.append(done)
        self.check_ending(done)
        if check:
            self.check_cost(done)
        return done

    def check_ending(self, done):
        command = done.words[0]
        said = done.err.strip()[-500:]
        if done.code in (-signal.SIGXCPU, -signal.SIGKILL):
            raise Fault(f"{command}: does not end", f"{done.cpu_s:.1f} s of CPU time, {done.wall_s:.1f} s in all")
        if done.code < 0:
            raise Fault(f"{command}: {signal.Signals(-done.code).name}{failed_check(done.err)}", said)
        if done.code not in CODES:
            raise Fault(f"{command}: exit code {done.code}", said)
        if NEVER.search(done.err):
            raise Fault(f"{command}: a message of a fault", said)
        if done.code == 0:
            return
        why = error_line(done.err)
        if why is None:
            raise Fault(f"{command}: fails without a word", f"exit code {done.code}, {said!r}")
        if not re.fullmatch(r"[^\n]*([^\s.:;,]|\.\.\.)", why) or any(ord(c) < 32 and c != "\t" for c in why):
            raise Fault(f"{command}: an error of another form", why)

    def check_cost(self, done):
        command, limit = done.words[0], seconds_of(done.words)
        if done.peak_bytes > self.memory_bytes:
            raise Fault(f"{command}: memory", f"{done.peak_bytes >> 20} MiB; expected {self.memory_bytes >> 20} MiB at most")
        # CPU time, since wall time also depends on other processes; a command with two threads may use twice as much.
        if limit is not None and min(done.wall_s, done.cpu_s) > limit + LATE_SECONDS:
            raise Fault(f"{command}: later than --time-limit", f"{done.cpu_s:.1f} s of CPU time")
