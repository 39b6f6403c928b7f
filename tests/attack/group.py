"""A group of ranks, a process each: starts them, hears what they say, sees when they end."""

import os
import re
import secrets
import selectors
import shutil
import signal
import subprocess
import time

from world import RANKS, inside

PATIENCE = float(os.environ.get("XCCL_PATIENCE", "1"))  # how many times longer than promised ends may take, on slow machines
LIMIT_S = 4  # the time limit that groups set, where a case sets no other
HANG_S = 10  # seconds that groups may take beyond all limits before they are killed


class Group:
    """Ranks that do the same steps (rank.c), or `command`. By rank: `said`, its lines; `ended`, its exit status; `end_s`, when it
    ended; `peak_bytes`, the most memory that it had."""

    def __init__(
        self, world, place, steps="", limit_s=LIMIT_S, address=None, own_env=None, own_steps=None, command=None, start=True
    ):
        self.world, self.place, self.limit_s = world, place, limit_s
        self.steps, self.own_steps, self.command = steps, own_steps or {}, command
        self.address = address or f"{place.address}:{world.port()}"
        self.token = secrets.token_hex(16)
        self.own_env = own_env or {}  # by rank; "*": of all. A variable that is None is not set.
        self.processes, self.ended, self.end_s = [None] * RANKS, [None] * RANKS, [None] * RANKS
        self.said, self.rest, self.peak_bytes = [[] for _ in range(RANKS)], [b""] * RANKS, [0] * RANKS
        self.stacks = {}
        self.selector = selectors.DefaultSelector()
        self.began = time.monotonic()
        for rank in range(RANKS if start else 0):
            self.start(rank)

    def environment(self, rank):
        env = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(self.world.folder / "home"), "XCCL_RANK": str(rank),
               "XCCL_SIZE": str(RANKS), "XCCL_TOKEN": self.token, "XCCL_ADDRESS": self.address,
               "XCCL_INTERFACE": self.place.interface or None, "XCCL_HOST_ID": self.place.host_ids[rank]}
        env |= self.own_env.get("*", {}) | self.own_env.get(rank, {})
        return {name: value for name, value in env.items() if value is not None}

    def start(self, rank, before=()):
        """`before`: words that stand before the command, as `prlimit --nofile=9`."""
        command = self.command or [self.world.rank, str(self.world.books), str(self.limit_s)]
        steps = [] if self.command else self.own_steps.get(rank, self.steps).split()
        with inside(self.place.spaces[rank]):
            # Where libraries write of crashes, they write into the folder of the world.
            process = subprocess.Popen(
                [*before, *command, *steps], cwd=self.world.folder, env=self.environment(rank), stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
        self.processes[rank] = process
        os.set_blocking(process.stdout.fileno(), False)
        self.selector.register(process.stdout, selectors.EVENT_READ, rank)

    def hear(self, timeout_s):
        """What comes within the time, or at once where something has come."""
        for key, _ in self.selector.select(max(0, timeout_s)):
            rank, process = key.data, self.processes[key.data]
            came = process.stdout.read(1 << 16)
            *lines, self.rest[rank] = (self.rest[rank] + (came or b"")).split(b"\n")
            self.said[rank] += [line.decode("utf-8", "backslashreplace") for line in lines]
            if came == b"":
                self.selector.unregister(process.stdout)
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = self.ended[rank] = os.waitstatus_to_exitcode(status)
                self.peak_bytes[rank] = usage.ru_maxrss * 1024
                self.end_s[rank] = time.monotonic()
                self.said[rank] += [self.rest[rank].decode("utf-8", "backslashreplace")] if self.rest[rank] else []

    def alive(self):
        return [rank for rank, process in enumerate(self.processes) if process is not None and self.ended[rank] is None]

    def until_at(self, ranks, step, times=1, timeout_s=HANG_S):
        """Waits until the ranks have begun the step so often; False where one ends before, or the time is over."""
        until, start = time.monotonic() + timeout_s, f"at {step}"
        while not all(sum(line.startswith(start) for line in self.said[rank]) >= times for rank in ranks):
            if time.monotonic() > until or any(self.ended[rank] is not None for rank in ranks):
                return False
            self.hear(min(0.1, until - time.monotonic()))
        return True

    def go_on(self, ranks):
        """Wakes ranks from `pause`."""
        for rank in ranks:
            try:
                self.processes[rank].stdin.write(b"x")
                self.processes[rank].stdin.flush()
            except OSError:
                pass  # it has ended

    def signal(self, rank, number):
        """To a process that may have ended: nobody but `hear` takes its status, so that its number is still its own."""
        if self.ended[rank] is None:
            os.kill(self.processes[rank].pid, number)

    def run(self, until_s, but=()):
        """Until all have ended but those, or the monotonic time has come; kills what is left. The ranks that had not ended."""
        while set(self.alive()) - set(but) and time.monotonic() < until_s:
            self.hear(min(0.2, until_s - time.monotonic()))
        hung = [rank for rank in self.alive() if rank not in but]
        self.stacks = {rank: stack_of(self.processes[rank].pid) for rank in hung[:2]}
        self.stop()
        return hung

    def stop(self):
        for rank in self.alive():
            self.signal(rank, signal.SIGKILL)
        while self.alive():
            self.hear(1)
        for process in self.processes:
            if process is not None:
                process.stdin.close()
                process.stdout.close()
        self.selector.close()

    def step_s(self, rank, step):
        """When the rank last began the step; None where it did not."""
        times = [float(line.split()[-1]) for line in self.said[rank] if line.startswith(f"at {step} ")]
        return times[-1] if times else None

    def failure(self, rank):
        """The text of the rank's failed call, or what it said last."""
        lines = [line for line in self.said[rank] if line.startswith("failed ") or "xccl-synth: " in line]
        return lines[0] if lines else (self.said[rank] or ["nothing"])[-1]


def stack_of(pid):
    """Where the threads of a process are, shortly; "" without gdb."""
    if not shutil.which("gdb"):
        return ""
    command = ["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 12"]
    try:
        text = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    except subprocess.TimeoutExpired:
        return "gdb did not end"
    frames = [re.sub(r"0x[0-9a-f]+ in |\(.*", "", line)[:100] for line in text.splitlines() if re.match(r"#\d+ |Thread ", line)]
    return "\n".join(frames[:60])


def describe(code):
    return signal.Signals(-code).name if code < 0 else f"exit {code}"
