"""Healthy groups: every rank is right, and ends soon after its last call.

STEPS has what groups do. The places are one machine that says to be two hosts, over libfabric, two hosts in namespaces, and such
hosts with a cable that hurts frames.
"""

from group import HANG_S, PATIENCE, Group, describe
from world import FINE, RANKS, STORMS

END_S = PATIENCE  # after the last rank's last call has returned, all have ended
STORM_END_S = 4 * PATIENCE  # where a lost frame is sent again after 0.2 s, then 0.4 s, then 0.8 s, then 1.6 s

STEPS = {
    "one call": "init book=one allreduce=9000 sync destroy",
    "messages": "init connect ring=5000 sync destroy",
    "no sync": "init book=one connect allreduce=300 ring=300 destroy",
    "no call": "init book=one connect destroy",
    "calls": "init book=one connect allreduce=20000 ring=9000 sync allreduce=100 ring=100 allreduce=33333 sync destroy",
    "second book": "init book=one allreduce=9000 sync book=two allreduce=9000 sync destroy",
    "second book, no sync": "init book=one allreduce=9000 book=two allreduce=100 destroy",
    "split": "init book=one allreduce=9000 sync split book=two allreduce=9000 sync destroy destroy",
    "split, parent first": "init book=one allreduce=9000 split book=one allreduce=100 swap destroy allreduce=100 sync destroy",
    "shrink": "init book=one allreduce=9000 sync shrink=3 connect ring=5000 sync destroy destroy",
    "twice": "init book=one allreduce=9000 sync destroy init connect ring=100 sync destroy",
    "first rank late": "init book=one allreduce=9000 sync late=0,300 destroy",
    "last rank late": f"init connect ring=100 sync late={RANKS - 1},300 destroy",
}


def end_of(steps):
    """The step after the last that waits for the others' calls: from there on ranks only end."""
    words = steps.split()
    last = max((i for i, word in enumerate(words) if word == "sync" or word.startswith("late")), default=None)
    return words[last + 1] if last is not None else "destroy"


def wrong_with(group, steps, end_s, until_s=0):
    hung = group.run(until_s)
    problems = [f"rank {rank}: did not end; it stood at\n{group.stacks.get(rank, '')}" for rank in hung]
    for rank in range(RANKS):
        if rank not in hung and group.ended[rank] != 0:
            problems.append(f"rank {rank}: {describe(group.ended[rank])}: {group.failure(rank)}")
    if not problems:
        took = max(group.end_s) - max(group.step_s(rank, end_of(steps)) for rank in range(RANKS))
        if took > end_s:
            problems.append(f"the last rank ended {took:.1f} s after the last call; expected {end_s} s at most")
    return problems


def healthy(world, place, steps, end_s):
    group = Group(world, place, steps)
    return wrong_with(group, steps, end_s, group.began + group.limit_s + HANG_S)


def cases(world, full):
    """(name, function of a source of chance that gives a list of problems)."""
    where = [("loopback", FINE, 500 if full else 8), ("hosts", FINE, 500 if full else 8)]
    where += [("hosts", storm, 100 if full else 2 if storm.name in ("lossy", "flipped") else 0) for storm in STORMS]
    for place, weather, count in where:
        for k in range(count):
            name, steps = list(STEPS.items())[k % len(STEPS)]

            def play(_, place=place, weather=weather, steps=steps):
                here = getattr(world.network(weather), place)()
                return healthy(world, here, steps, END_S if weather == FINE else STORM_END_S)

            yield f"{place}, {weather.name}: {name} {k}", play
