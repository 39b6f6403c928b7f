"""A rank, or the rendezvous, that knows the token and lies (lies.py): healthy ranks end with a text that says who, or go on.

They do not crash, do not hang beyond the limit, and take bounded memory; no text of theirs has control characters, or is long.
"""

import re
import time

import wire
from group import HANG_S, PATIENCE, Group, describe
from lies import BLOBS, GATHERS, HELLOS, LIES, NASTY, RANK, SERVERS, Liar, LyingServer
from stranger import Stranger
from world import RANKS

LIMIT_S = 2
END_S = LIMIT_S + 3 * PATIENCE
MOST_BYTES = 300 << 20
MOST_TEXT = 4200
STEPS = "init book=one connect allreduce=9000 ring=100 sync destroy"


def wrong_with(group, healthy, hung, who):
    problems = [f"rank {rank}: did not end; it stood at\n{group.stacks.get(rank, '')}" for rank in hung]
    for rank in healthy:
        text, took = group.failure(rank), (group.end_s[rank] or 0) - group.began
        if rank in hung:
            continue
        if group.ended[rank] < 0 or group.ended[rank] in (99, 13):  # a wrong number, an internal error
            problems.append(f"rank {rank}: {describe(group.ended[rank])}: {text}")
        if took > END_S:
            problems.append(f"rank {rank}: ended after {took:.1f} s; expected {END_S} s at most; {text}")
        if group.peak_bytes[rank] > MOST_BYTES:
            problems.append(f"rank {rank}: took {group.peak_bytes[rank] >> 20} MiB; expected {MOST_BYTES >> 20} at most")
        if group.ended[rank] != 0 and not re.search(who, text):
            problems.append(f"rank {rank}: {text}; expected /{who}/")
        said = "\n".join(group.said[rank])
        if len(text) > MOST_TEXT or re.search(r"[\x00-\x09\x0b-\x1f\x7f]|\\x", said):
            problems.append(f"rank {rank}: a text of {len(text)} characters with what is not to be printed: {said[:300]!r}")
    return problems


def lie(world, place, **lies):
    address = (place.address, world.port())
    own = place.address if place.interface else world.network().addresses[1]
    group = Group(world, place, STEPS, limit_s=LIMIT_S, address=f"{address[0]}:{address[1]}", start=False)
    for rank in range(RANK):
        group.start(rank)

    def play(ready):
        ready()
        Liar(address, own, group.token, **lies).play()

    liar = Stranger(place.spaces[RANK], play)
    hung = group.run(time.monotonic() + END_S + HANG_S)
    liar.finish()
    return wrong_with(group, range(RANK), hung, rf"\brank {RANK}\b|{re.escape(own)}:\d+|host liar")


def serve(world, place, how):
    address = (place.address, world.port())
    group = Group(world, place, STEPS, limit_s=LIMIT_S, address=f"{address[0]}:{address[1]}", start=False)
    server = Stranger(place.spaces[0], lambda ready: play_server(ready, address, group.token, how))
    for rank in range(1, RANKS):
        group.start(rank)
    hung = group.run(time.monotonic() + END_S + HANG_S)
    server.finish()
    # Nobody knows who made up a partner of rank 9.
    who = rf"{re.escape(address[0])}:{address[1]}|\brank [09]\b|host liar|rendezvous"
    return wrong_with(group, range(1, RANKS), hung, who)


def play_server(ready, address, token, how):
    server = LyingServer(*address, token, how)
    ready()
    server.play()


HOSTS = {  # the liar's false statements about its host
    "another's host": wire.host("the host"),
    "a nasty name of its host": wire.host("the liar's host", name=NASTY),
    "a name of its host of 1 MiB": wire.host("the liar's host", name="h" * (1 << 20)),
    "an address that is a name": wire.host("the liar's host", address="localhost"),
}


def every_lie():
    """(name, arguments of Liar)"""
    for name, hello in HELLOS.items():
        yield f"hello, {name}", {"hello": hello}
    for name, lies in LIES.items():
        yield name, {"lies": lies}
    for name, blob in HOSTS.items():
        yield f"all-gather 0, {name}", {"mine": lambda k, true, blob=blob: blob if k == 0 else true}
    for number in range(GATHERS):
        for name, change in BLOBS.items():
            yield (f"all-gather {number}, {name}",
                   {"mine": lambda k, blob, number=number, change=change: change(blob) if k == number else blob})


SHORT = 8  # number of lies in a short run, spread over all


def cases(world, full):
    every = list(every_lie())
    for k, (name, lies) in enumerate(every):
        if full or k % (len(every) // SHORT) == 7:
            yield name, lambda _, lies=lies: lie(world, world.network().hosts(), **lies)
    for k, (name, how) in enumerate(SERVERS.items()):
        if full or k % 9 == 0:
            yield f"serves, {name}", lambda _, how=how: serve(world, world.network().hosts(), how)
