"""Strangers without the token: they change no byte, learn no secret, get no rank's place, and hold up no start.

They are other users' processes on the hosts of the group (stranger.py): they talk at every door, have the port first, compute
tokens that are no secret, replay what a rank said, and write by libfabric into a rank's slots.
"""

import contextlib
import os
import re
import resource
import socket
import subprocess
import threading
import time
import typing
from functools import partial

import wire
from group import HANG_S, PATIENCE, Group, describe
from stranger import SAYINGS, SQUATS, Stranger, claim, flood, haunt, say, squat
from world import NOBODY, RANKS, inside, listeners

DELAY_S = PATIENCE  # that a stranger may add to a start
LIMIT_S = 4
FILES = 512  # that a rank may have open, whom strangers flood
LATE_S = 0.4  # after which the last rank is started, so that strangers find a meeting that waits
STEPS = "init book=one connect allreduce=100 sync wait=300 allreduce=20000 ring=9000 sync destroy"
quiet_s = {}  # place's name: seconds that a start takes without strangers


def started_s(group):
    """When the last rank had its first call before it; None where one had not."""
    times = [group.step_s(rank, "allreduce=100") for rank in range(RANKS)]
    return None if None in times else max(times) - group.began


def late_group(world, place, **given):
    group = Group(world, place, STEPS, limit_s=LIMIT_S, start=False, **given)
    for rank in range(RANKS - 1):
        group.start(rank)
    return group


def await_late(group, seconds=LATE_S):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        group.hear(max(0, until - time.monotonic()))


def end_late(group):
    await_late(group)
    group.start(RANKS - 1)
    group.run(time.monotonic() + LIMIT_S + HANG_S)


def quiet(world, place):
    """A start without strangers, the slowest of three."""
    if place.name not in quiet_s:
        times = []
        for _ in range(3):
            group = late_group(world, place)
            end_late(group)
            times.append(started_s(group) or 0)
        quiet_s[place.name] = max(times)
    return quiet_s[place.name]


def disturbed(group, expected_s):
    """What strangers did to a group that should have gone on."""
    problems = [f"rank {r}: {describe(group.ended[r])}: {group.failure(r)}" for r in range(RANKS) if group.ended[r] != 0]
    took = started_s(group)
    if took is not None and took > expected_s + DELAY_S:
        problems.append(f"the start took {took:.1f} s; expected {expected_s + DELAY_S:.1f} s at most")
    return problems


def learnt(group, heard):
    """What a stranger heard that is secret."""
    heard = bytes.fromhex(heard) if isinstance(heard, str) else heard
    secrets = {"the token": group.token.encode(), "the token's bytes": bytes.fromhex(group.token),
               "the token of version 1": wire.token_1(group.token), "the key": wire.key_of(group.token)}
    problems = [f"a stranger was sent {name}" for name, secret in secrets.items() if secret in heard]
    for version in (1, 2):
        if wire.encode(wire.WELCOME, protocol=version)[:8] in heard:
            problems.append("a stranger was welcomed as a rank")
    return problems


def talk(world, place, chance, sayings):
    expected_s = quiet(world, place)
    strangers = [Stranger(space, haunt(sayings, 1.5, chance.random())) for space in sorted(set(place.spaces))]
    group = late_group(world, place)
    end_late(group)
    problems = disturbed(group, expected_s)
    for stranger in strangers:
        heard, times = stranger.finish()
        problems += learnt(group, heard)
        if not times:
            problems.append("a stranger found no door; expected some in every namespace")
    return problems


def fill(world, place, _):
    """A stranger holds more connections than rank 0 may have open files."""
    expected_s = quiet(world, place)
    stranger = Stranger(place.spaces[0], flood(2))
    group = Group(world, place, STEPS, limit_s=LIMIT_S, start=False)
    group.start(0)
    resource.prlimit(group.processes[0].pid, resource.RLIMIT_NOFILE, (FILES, FILES))
    for rank in range(1, RANKS - 1):
        group.start(rank)
    await_late(group, 4 * LATE_S)  # in which a flood fills what it can
    late = time.monotonic() - group.began - LATE_S
    end_late(group)
    came = stranger.finish()
    return disturbed(group, expected_s + late) + ([] if came > FILES else [f"{came} strangers came; expected more than {FILES}"])


LAUNCHERS = {
    "by hand": ({}, "explicit"),
    "by hand, XCCL_JOB": ({"XCCL_JOB": "nightly"}, "explicit-nightly"),
    "Slurm": ({"SLURM_JOB_ID": "4242", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_NODES": "1", "SLURM_NTASKS": str(RANKS)},
              "slurm-4242-0"),
    "torchrun": ({"TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": "0", "MASTER_PORT": "29400",
                  "MASTER_ADDR": "127.0.0.1", "WORLD_SIZE": str(RANKS)}, "torchrun-none-0-29400"),
}


def compute(world, place, _, launcher):
    """No token is given: strangers must not be able to compute the one that is taken."""
    variables, secret = LAUNCHERS[launcher]
    rank_variable = {"Slurm": "SLURM_PROCID", "torchrun": "RANK"}.get(launcher)
    env = {"*": variables | {"XCCL_TOKEN": None, "XCCL_ADDRESS": None}}
    if rank_variable:
        env["*"] |= {"XCCL_RANK": None, "XCCL_SIZE": None}
        env |= {rank: {rank_variable: str(rank)} for rank in range(RANKS)}
    group = late_group(world, place, own_env=env)
    stranger = Stranger(place.spaces[0], claim([secret, f"{secret} {secret}"], 1.5))
    end_late(group)
    given, heard = stranger.finish()
    return given + disturbed(group, quiet(world, place)) + learnt(group, heard)


def no_secret(world, place, _):
    """Nothing that is secret is known, and other hosts would reach the ranks: they refuse, and say how to set a token."""
    group = Group(world, place, STEPS, limit_s=LIMIT_S, own_env={"*": {"XCCL_TOKEN": None, "HOME": None}})
    group.run(group.began + LIMIT_S + HANG_S)
    return [f"rank {r}: {describe(group.ended[r])}: {group.failure(r)}; expected an error that names XCCL_TOKEN"
            for r in range(RANKS) if group.ended[r] in (0, None) or "XCCL_TOKEN" not in group.failure(r)]


def first_at_port(world, place, _, name):
    """Rank 0's user named the port; a stranger has it. The ranks end, and have told nothing."""
    port = world.port()
    seconds = LIMIT_S + 2 * PATIENCE
    stranger = Stranger(place.spaces[0], squat(name, port, seconds))
    group = Group(world, place, STEPS, limit_s=LIMIT_S, address=f"{place.address}:{port}")
    hung = group.run(group.began + seconds + HANG_S)
    problems = [f"rank {rank}: did not end" for rank in hung] + learnt(group, stranger.finish())
    for rank in range(RANKS):
        text, took = group.failure(rank), (group.end_s[rank] or 0) - group.began
        if rank not in hung and (group.ended[rank] <= 0 or str(port) not in text):
            problems.append(f"rank {rank}: {describe(group.ended[rank])}: {text}; expected an error that names port {port}")
        if took > seconds:
            problems.append(f"rank {rank}: ended after {took:.1f} s; expected {seconds} s at most")
        if any(ord(c) < 32 for c in text) or len(text) > 2000:
            problems.append(f"rank {rank}: an uncut text of {len(text)} characters: {text[:200]!r}")
    return problems


def meeting_ports(world, place, env):
    """The ports at which ranks meet that are told none: those at which rank 0 listens every time with this token."""
    seen, token = [], os.urandom(16).hex()
    for _ in range(2):
        group = Group(world, place, STEPS, limit_s=LIMIT_S, own_env=env, start=False)
        group.token = token
        group.start(0)
        until = time.monotonic() + 3
        while time.monotonic() < until and len(listeners(place.spaces[0], group.processes[0].pid)) < 2:
            group.hear(0.05)
        seen.append({port for _, port in listeners(place.spaces[0], group.processes[0].pid)})
        group.stop()
    return seen[0] & seen[1]


def first_at_computed_port(world, place, _, name):
    """Nobody named a port. A stranger has the one at which a job of these names meets with a token of the stranger's own."""
    expected_s = quiet(world, place)
    env = {"*": {"XCCL_ADDRESS": None}}
    ports = meeting_ports(world, place, env)
    if len(ports) != 1:
        return [f"rank 0 listens at the ports {sorted(ports)} each time; expected one"]
    stranger = Stranger(place.spaces[0], squat(name, ports.pop(), 2.5))
    group = late_group(world, place, own_env=env)
    end_late(group)
    return disturbed(group, expected_s) + learnt(group, stranger.finish())


class Tap:
    """Passes on one connection to the rendezvous and keeps what a rank said on it."""

    def __init__(self, space, port, address, to_port):
        with inside(space):
            self.door = socket.create_server((address, port))
        self.space, self.to, self.said = space, (address, to_port), b""
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        guest = self.door.accept()[0]
        with inside(self.space):
            server = socket.create_connection(self.to, 5)
        back = threading.Thread(target=self.copy, args=(server, guest), daemon=True)
        back.start()
        self.copy(guest, server, keep=True)
        back.join()
        for end in (guest, server, self.door):
            end.close()

    def copy(self, source, sink, keep=False):
        try:
            while data := source.recv(1 << 16):
                self.said += data if keep else b""
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def replay(world, place, _):
    """What a rank said to the rendezvous is said again, by a stranger, before the rank of the next group of this token comes."""
    expected_s = quiet(world, place)
    port, tap_port = world.port(), world.port()
    tap = Tap(place.spaces[0], tap_port, place.address, port)
    late = RANKS - 1
    first = Group(world, place, STEPS, limit_s=LIMIT_S, address=f"{place.address}:{port}",
                  own_env={late: {"XCCL_ADDRESS": f"{place.address}:{tap_port}"}})
    first.run(first.began + LIMIT_S + HANG_S)
    tap.thread.join(5)
    if not tap.said or any(first.ended):
        return [f"the first group did not run: {[first.failure(rank) for rank in range(RANKS)]}"]
    group = Group(world, place, STEPS, limit_s=LIMIT_S, start=False)
    group.token = first.token
    for rank in range(late):
        group.start(rank)
    stranger = Stranger(place.spaces[0], haunt([say(tap.said)], 0.25, 1))
    end_late(group)
    return disturbed(group, expected_s) + learnt(group, stranger.finish()[0])


def write(world, place, chance, mode):
    """By libfabric into the slots of ranks that call all the time: data that they never got, arrivals that never were."""
    group = Group(world, place, "init book=one connect loop=5000", limit_s=LIMIT_S)
    if not group.until_at(range(RANKS), "loop"):
        group.stop()
        return [f"the group did not come so far: {[group.failure(rank) for rank in range(RANKS)]}"]
    told, problems = [], []
    for rank in chance.sample(range(RANKS), 2):
        for _, port in listeners(place.spaces[rank], group.processes[rank].pid):
            with inside(place.spaces[rank]):
                done = subprocess.run(
                    ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "timeout", "5", world.stranger,
                     place.address if place.interface else world.network().addresses[rank * 2 // RANKS], str(port), mode],
                    capture_output=True, text=True)
            told.append(f"port {port} of rank {rank}: {done.stdout.strip()}{done.stderr.strip()}")
            if re.search(r"(data|arrivals) completed", done.stdout):
                problems.append(f"writes of a stranger landed on rank {rank}")
            if done.returncode not in (0, 124):
                problems.append(f"the stranger ended with {done.returncode}; expected 0")
    await_late(group, LATE_S)
    alive = group.alive()
    group.stop()
    problems += [] if told else ["no rank listens for libfabric; expected a port"]
    problems += [f"rank {r}: {describe(group.ended[r])}: {group.failure(r)}" for r in range(RANKS) if r not in alive]
    return problems + ([f"the stranger's writes: {text}" for text in told] if problems else [])


def look(world, place, _):
    """While a meeting waits and after it: doors are open on one address, and no process shows the token to others."""
    group = Group(world, place, STEPS.replace("wait=300", "pause"), limit_s=LIMIT_S, start=False)
    for rank in range(RANKS - 1):
        group.start(rank)
    await_late(group)
    problems = look_at(group)
    group.start(RANKS - 1)
    if not group.until_at(range(RANKS), "pause"):
        problems.append("the group did not come so far")
    problems += look_at(group)
    group.go_on(range(RANKS))
    group.run(time.monotonic() + HANG_S)
    return problems + disturbed(group, HANG_S)


def look_at(group):
    problems = []
    for rank in group.alive():
        space, pid = group.place.spaces[rank], group.processes[rank].pid
        wide = [port for address, port in listeners(space, pid) if set(address) == {"0"}]
        problems += [f"rank {rank}: listens at port {port} of every address" for port in wide]
        problems += learnt(group, Stranger(space, show(pid)).finish())
    return problems


def show(pid):
    """What anybody may read of a process."""

    def function(ready):
        ready()
        seen = b""
        for name in ("cmdline", "environ"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/{name}", "rb") as file:
                seen += file.read()
        return seen

    return function


class Kind(typing.NamedTuple):
    name: str
    places: tuple
    play: typing.Callable  # a function of world, place, chance
    often: int  # in the long form; 200 for each role of a stranger
    short: str = ""  # the place of the short form; "": none


def kinds():
    for name, saying in SAYINGS.items():
        yield Kind(f"talks, {name}", ("hosts", "memory"), partial(talk, sayings=[saying]), 6)
    everything = partial(talk, sayings=list(SAYINGS.values()))
    yield Kind("talks, all in turn", ("hosts", "memory", "loopback"), everything, 6, "hosts")
    yield Kind("floods", ("hosts", "memory"), fill, 6, "hosts")
    for name in LAUNCHERS:
        short = "memory" if name == "Slurm" else ""
        yield Kind(f"computes the token, {name}", ("memory",), partial(compute, launcher=name), 50, short)
    yield Kind("no token between hosts", ("hosts",), no_secret, 10, "hosts")
    for name in SQUATS:
        served = name == "serves by version 2"
        yield Kind(f"has the port first, {name}", ("hosts",), partial(first_at_port, name=name), 30, "hosts" if served else "")
        computed = partial(first_at_computed_port, name=name)
        yield Kind(f"has the computed port first, {name}", ("memory",), computed, 30, "memory" if name == "silence" else "")
    yield Kind("replays a rank's words", ("hosts",), replay, 200, "hosts")
    for mode in ("data", "arrivals", "messages"):
        short = "loopback" if mode != "messages" else ""
        yield Kind(f"writes {mode}", ("loopback", "hosts"), partial(write, mode=mode), 34, short)
    yield Kind("looks", ("hosts", "memory", "loopback"), look, 10, "hosts")


def cases(world, full):
    for kind in kinds():
        for place in kind.places if full else filter(None, [kind.short]):
            for k in range(kind.often if full else 1):
                name = f"{kind.name}, {place}: {k}"
                yield name, lambda chance, kind=kind, place=place: kind.play(world, getattr(world.network(), place)(), chance)
