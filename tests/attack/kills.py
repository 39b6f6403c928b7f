"""A rank fails: all others end within the time of a table, and name it.

The matrix is signal x phase x place. Phases are seen, not guessed: ranks say which step they begin, and `pause` holds them there.
FAULTS has the ways to fail that are not signals: a cut cable, a rank that cannot come, leaves early, has another token or book.
"""

import re
import signal
import time

from group import HANG_S, PATIENCE, Group, describe
from world import RANKS

LIMIT_S = 2  # time limit of the groups
AT_ONCE_S = PATIENCE
FORK_S = 3 * PATIENCE
AT_LIMIT_S = LIMIT_S + PATIENCE

# docs/running.md, "When something fails", has this table: after so long the last survivor has ended. Sockets tell that a process
# has ended; a rank that is stopped, or that has not come, is missed when the time limit is over.
WITHIN_S = {
    ("ends", "before"): AT_LIMIT_S,
    ("ends", "meeting"): AT_LIMIT_S,  # at once, if the rendezvous knew the rank already
    ("ends", "waiting"): AT_ONCE_S,
    ("ends", "between"): AT_ONCE_S,
    ("ends", "calls"): AT_ONCE_S,
    ("ends", "leaving"): AT_ONCE_S,
    ("ends", "destroy"): AT_ONCE_S,
    ("stops", "before"): AT_LIMIT_S,
    ("stops", "meeting"): AT_LIMIT_S,
    ("stops", "waiting"): AT_LIMIT_S,
    ("stops", "between"): AT_LIMIT_S,
    ("stops", "calls"): AT_LIMIT_S,
    ("stops", "leaving"): AT_LIMIT_S,
    ("stops", "destroy"): AT_LIMIT_S,
}
PLACES = ("memory", "loopback", "hosts")
SIGNALS = (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM, signal.SIGSTOP)
PHASES = ("before", "meeting", "waiting", "between", "calls", "leaving", "destroy")
CALLED = "init book=one connect allreduce=9000 ring=100 sync pause"
STEPS = {
    "before": "pause init book=one connect loop=9000",
    "meeting": "pause init book=one connect loop=9000",
    "waiting": "pause init book=one connect loop=9000",  # the victim has come, and another rank has not
    "between": f"{CALLED} allreduce=9000 ring=9000 sync destroy",
    "calls": "init book=one connect loop=20000",
    "leaving": f"{CALLED} destroy",
    "destroy": f"{CALLED} destroy",
}


def name_of(victim, group):
    """What a survivor's text has: the victim, or that the process which serves the rendezvous, rank 0's, is not there."""
    pid = group.processes[victim].pid
    served = rf"|serve[ds] it \([^)]*pid {pid}\)|nobody serves it.*rank 0" if victim == 0 else ""
    return rf"\brank {victim}\b(?!\d)|\branks ([\d-]+, )*{victim}\b{served}"


def survivors_of(group, victim, since_s, within_s, pattern, may_be_well=False, absent=None):
    """Waits for the survivors; what is wrong with their ends. `absent`: a rank that had not come, which nobody tells."""
    hung = group.run(since_s + within_s + HANG_S, but=[victim, absent])
    problems = [f"rank {rank}: did not end; it stood at\n{group.stacks.get(rank, '')}" for rank in hung]
    for rank in range(RANKS):
        if rank in (victim, absent) or rank in hung:
            continue
        took, text = group.end_s[rank] - since_s, group.failure(rank)
        if took > within_s:
            problems.append(f"rank {rank}: ended after {took:.1f} s; expected {within_s} s at most; it said {text}")
        if group.ended[rank] == 0 and may_be_well:
            continue
        if group.ended[rank] < 0 or group.ended[rank] in (0, 99):
            problems.append(f"rank {rank}: {describe(group.ended[rank])}: {text}; expected an error")
        elif not re.search(pattern, text):
            problems.append(f"rank {rank}: {text}; expected /{pattern}/")
    return problems


def absent_of(phase, victim):
    """The rank for which the others wait; not rank 0, which serves."""
    return None if phase != "waiting" else RANKS - 1 if victim < RANKS - 1 else 1


def bring_to(group, phase, victim, chance):
    """Until the group is in the phase, and then up to a moment within it. False where it did not come so far."""
    others, everyone = [r for r in range(RANKS) if r != victim], range(RANKS)
    if phase in ("before", "meeting", "waiting"):
        if not group.until_at(everyone, "pause"):
            return False
        late = {"before": victim, "waiting": absent_of(phase, victim)}.get(phase)
        group.go_on([rank for rank in everyone if rank != late])
        reached = phase == "before" or group.until_at([victim], "book=one")
        time.sleep({"before": chance.uniform(0, 0.3), "meeting": chance.uniform(0, 0.03), "waiting": 0.5}[phase])
    elif phase == "calls":
        reached = group.until_at(everyone, "loop")
        time.sleep(chance.uniform(0, 0.5))
    else:
        reached = group.until_at(everyone, "pause")
        if phase == "leaving":
            group.go_on(others)
            reached = reached and group.until_at(others, "destroy")
            time.sleep(chance.uniform(0, 0.1))
        elif phase == "destroy":
            group.go_on(everyone)
            reached = reached and group.until_at([victim], "destroy")
            time.sleep(chance.uniform(0, 0.005))
    return reached


def kill(world, place, number, phase, chance):
    victim = chance.randrange(RANKS)
    group = Group(world, place, STEPS[phase], limit_s=LIMIT_S)
    if not bring_to(group, phase, victim, chance):
        group.stop()
        return [f"the group did not come so far: {[group.failure(rank) for rank in range(RANKS)]}"]
    since = time.monotonic()
    group.signal(victim, number)
    if phase == "between":
        time.sleep(chance.choice([0, 0.05]))
        group.go_on([rank for rank in range(RANKS) if rank != victim])
    within = WITHIN_S["stops" if number == signal.SIGSTOP else "ends", phase]
    well, absent, pattern = phase in ("leaving", "destroy"), absent_of(phase, victim), name_of(victim, group)
    if number == signal.SIGSTOP and phase == "waiting":
        pattern += rf"|\brank {absent}\b"  # which is missing too, and longer
    return survivors_of(group, victim, since, within, pattern, well, absent)


# ---- Ways to fail that are not signals: (world, chance) gives a list of problems.


def cut_cable(world, _, limit_s=LIMIT_S, within_s=AT_LIMIT_S):
    network = world.network()
    group = Group(world, network.hosts(), STEPS["calls"], limit_s=limit_s)
    problems = [] if group.until_at(range(RANKS), "loop") else ["the group did not come so far"]
    network.cut(1, "down")
    since = time.monotonic()
    behind = range(RANKS // 2, RANKS)
    problems += survivors_of(group, None, since, within_s, r"\brank \d")
    network.cut(1, "up")
    for rank in range(RANKS):  # a rank behind the cut loses all other ranks
        lost = [r for r in range(RANKS) if (r in behind) != (rank in behind)]
        if not re.search(rf"rank [{lost[0]}-{lost[-1]}]\b", group.failure(rank)):
            problems.append(f"rank {rank}: {group.failure(rank)}; expected one of the ranks {lost}")
    return problems


def stopped_without_limit(world, chance):
    """A debugger, or a machine that sleeps: no limit means that the others wait."""
    victim = chance.randrange(RANKS)
    group = Group(world, world.network().hosts(), f"{CALLED} allreduce=9000 sync pause destroy", limit_s=0)
    problems = [] if group.until_at(range(RANKS), "pause") else ["the group did not come so far"]
    group.signal(victim, signal.SIGSTOP)
    group.go_on(range(RANKS))
    until = time.monotonic() + 12  # more than any time in which silence is noticed
    while time.monotonic() < until:
        group.hear(0.2)
    group.signal(victim, signal.SIGCONT)
    if not group.until_at(range(RANKS), "pause", times=2):
        problems.append("a rank did not go on")
    group.go_on(range(RANKS))
    group.run(time.monotonic() + HANG_S)
    return problems + [
        f"rank {r}: {describe(group.ended[r])}: {group.failure(r)}; expected exit 0" for r in range(RANKS) if group.ended[r] != 0
    ]


def cannot_come(world, _, before):
    """A rank without descriptors or memory fails at once, and tells the others: at once who had come, at their limit who had not."""
    victim = 2
    group = Group(world, world.network().hosts(), STEPS["calls"], limit_s=LIMIT_S, start=False)
    for rank in range(RANKS):
        group.start(rank, before if rank == victim else ())
    while group.ended[victim] is None and time.monotonic() < group.began + HANG_S:
        group.hear(0.2)
    return survivors_of(group, victim, time.monotonic(), AT_LIMIT_S, rf"\brank {victim}\b")


def leaves(world, _, last, pattern, limit_s=0, within_s=AT_ONCE_S):
    """A rank does something else while the others have a call to make that needs it."""
    victim = RANKS - 1
    own = {victim: f"{CALLED} {last}"}
    group = Group(world, world.network().hosts(), f"{CALLED} allreduce=9000 sync destroy", limit_s=limit_s, own_steps=own)
    problems = [] if group.until_at(range(RANKS), "pause") else ["the group did not come so far"]
    group.go_on([victim])
    time.sleep(0.1)
    group.go_on(range(victim))
    return problems + survivors_of(group, victim, time.monotonic(), within_s, pattern.format(victim))


def forks_and_exits(world, chance):
    """The rank's fork outlives it; the others end before the fork does."""
    problems = leaves(world, chance, f"fork={FORK_S} exit", r"\brank {0}\b.*process has ended")
    time.sleep(FORK_S)
    return problems


def another_token(world, _):
    victim = RANKS - 1
    group = Group(world, world.network().hosts(), STEPS["calls"], limit_s=LIMIT_S, own_env={victim: {"XCCL_TOKEN": "another"}})
    return survivors_of(group, victim, group.began, AT_LIMIT_S + 1, rf"rank {victim}\b(?!\d)")


def another_book(world, _):
    victim = RANKS - 1
    group = Group(world, world.network().hosts(), STEPS["calls"], limit_s=0, own_steps={victim: "init book=two connect"})
    return survivors_of(group, victim, group.began, 2 + AT_ONCE_S, rf"rank {victim}\b[^;]*another plan")


def program(world, chance):
    """Ranks of `xccl-synth run`, killed at any moment from their start on."""
    victim, place = chance.randrange(RANKS), world.network().hosts()
    words = [world.synth, "run", world.plans[0], "--sizes", "256KiB", "--iters", "1000000", "--network", "ofi"]
    group = Group(world, place, command=[*words, "--timeout", f"{LIMIT_S}s"])
    until = time.monotonic() + chance.choice([chance.uniform(0, 0.2), chance.uniform(0.2, 1.5)])
    while time.monotonic() < until:
        group.hear(0.05)
    since = time.monotonic()
    group.signal(victim, signal.SIGKILL)
    return survivors_of(group, victim, since, AT_LIMIT_S, name_of(victim, group))


FAULTS = {
    "cable cut in calls": cut_cable,
    "rank without descriptors": lambda *a: cannot_come(*a, ["prlimit", "--nofile=12"]),
    "rank without memory": lambda *a: cannot_come(*a, ["prlimit", f"--as={40 << 20}"]),
    "rank destroys early": lambda *a: leaves(*a, "destroy", r"\brank {0}\b.*left"),
    "rank aborts": lambda *a: leaves(*a, "abort", r"\brank {0}\b"),
    "rank exits without destroy": lambda *a: leaves(*a, "exit", r"\brank {0}\b.*process has ended"),
    "rank exits without destroy, its fork lives": forks_and_exits,
    "rank makes another call": lambda *a: leaves(*a, "allreduce=77 sync", r"\brank {0}\b"),
    "rank makes no call": lambda *a: leaves(*a, "wait=60000", r"\brank \d", limit_s=LIMIT_S, within_s=AT_LIMIT_S + 1),
    "rank with another token": another_token,
    "rank with another book": another_book,
    "rank stopped for 12 s, no limit": stopped_without_limit,
    "cable cut in calls, no limit": lambda *a: cut_cable(*a, limit_s=0, within_s=12),
    "rank of xccl-synth run killed": program,
}


LONG = ("rank stopped for 12 s, no limit", "cable cut in calls, no limit")  # for the long form


def in_short(number, phase, place):
    """KILL everywhere, each other signal somewhere."""
    if number == signal.SIGKILL:
        return place != "loopback" or phase in ("calls", "leaving")
    also = {signal.SIGSEGV: "calls", signal.SIGABRT: "between", signal.SIGTERM: "destroy", signal.SIGSTOP: "calls"}
    return place == "hosts" and phase == also[number]


def cases(world, full):
    for place in PLACES:
        for phase in PHASES:
            for number in SIGNALS:
                if not full and not in_short(number, phase, place):
                    continue

                def play(chance, place=place, number=number, phase=phase):
                    return kill(world, getattr(world.network(), place)(), number, phase, chance)

                for k in range(4 if full else 1):
                    yield f"{number.name.removeprefix('SIG')} in {phase}, {place}: {k}", play
    for name, fault in FAULTS.items():
        for k in range((100 if fault is program else 4) if full else name not in LONG):
            yield f"{name}: {k}", lambda chance, fault=fault: fault(world, chance)
