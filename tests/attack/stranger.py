"""Strangers: child processes of user 65534 in a namespace, which know no token. Each does one function and tells its result."""

import contextlib
import itertools
import json
import os
import pathlib
import random
import resource
import signal
import socket
import struct
import time
import traceback

import wire
from world import NOBODY, enter

# ---- The process


class Stranger:
    """Runs function(ready) as nobody; it calls ready() when the group may start. Its result is JSON, in which bytes are hex."""

    def __init__(self, space, function):
        ready, told = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                enter(space)
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                signal.alarm(60)
                value = function(lambda: os.write(ready[1], b"x"))
                with open(told[1], "w") as file:
                    json.dump(value, file, default=bytes.hex)
                code = 0
            except BaseException:
                traceback.print_exc()
            os._exit(code)
        os.close(ready[1])
        os.close(told[1])
        self.told = told[0]
        os.read(ready[0], 1)  # or its end
        os.close(ready[0])

    def finish(self):
        """Waits until it is through. What it tells."""
        with open(self.told) as file:
            text = file.read()
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        if code != 0:
            raise RuntimeError(f"a stranger ended with {code}")
        return json.loads(text or "null")


def doors():
    """(address, port) of all that listen in this namespace, as anybody may read."""
    found = set()
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in pathlib.Path(f"/proc/thread-self/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] != "0A":
                continue
            address, port = fields[1].split(":")
            raw = b"".join(struct.pack("=I", int(address[i:i + 8], 16)) for i in range(0, len(address), 8))
            name = socket.inet_ntop(family, raw)
            found.add(({"0.0.0.0": "127.0.0.1", "::": "127.0.0.1"}.get(name, name), int(port, 16)))
    return found


# ---- What is said at a door: function(connection, chance), which may leave the connection open.


def bytewise(connection, data):
    for byte in data:
        connection.socket.sendall(bytes([byte]))
        time.sleep(0.002)


def reset(connection, _):
    connection.socket.sendall(wire.encode(wire.KNOCK, bytes(32))[:20])
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def prove_wrongly(connection, chance):
    """The handshake of version 2 with a token that is guessed."""
    if wire.knock(connection, f"guess {chance.random()}"):
        connection.send(wire.HELLO, wire.hello(3))


def say(data):
    return lambda connection, chance: connection.socket.sendall(data(chance) if callable(data) else data)


SAYINGS = {
    "silence": lambda *_: None,
    "garbage": say(lambda chance: chance.randbytes(5000)),
    "another protocol": say(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
    "a length of 2^64 - 1": say(wire.encode(wire.HELLO, b"x" * 100, length=(1 << 64) - 1)),
    "a length of 2^31": say(wire.encode(wire.KNOCK, b"x" * 100, length=1 << 31)),
    "much": say(lambda chance: wire.encode(wire.HELLO, chance.randbytes(60000))),
    "hello of version 1": say(wire.encode(wire.HELLO, wire.hello_1(wire.token_1("explicit"), 3), protocol=1)),
    "hello of version 9": say(wire.encode(wire.HELLO, wire.hello(3), protocol=9)),
    "hello without proof": say(wire.encode(wire.HELLO, wire.hello(3))),
    "wrong proof": prove_wrongly,
    "partner without proof": say(wire.encode(wire.PARTNER, struct.pack("<ii", 0, 3) + bytes(32))),
    "partner of version 1": say(wire.encode(wire.PARTNER, bytes(16) + struct.pack("<ii", 0, 3), protocol=1)),
    "byte by byte": lambda connection, _: bytewise(connection, wire.encode(wire.KNOCK, bytes(32))),
    "half": say(wire.encode(wire.HELLO, wire.hello(3))[:40]),
    "reset": reset,
    "failure": say(wire.encode(wire.FAIL, wire.status(6, "rank 1: dead") + bytes(32))),
}


def haunt(sayings, seconds, seed, most=60):
    """Comes to every door of the namespace again and again, and says one thing after another. (what it heard, times)"""

    def function(ready):
        chance, open_ones, heard, times = random.Random(seed), [], b"", 0
        ready()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for address, port in sorted(doors()):
                with contextlib.suppress(OSError):
                    connection = wire.connect(address, port, 0.5)
                    open_ones.append(connection)
                    times += 1
                    sayings[times % len(sayings)](connection, chance)
            for connection in open_ones:
                with contextlib.suppress(OSError):
                    connection.hear(0.001)
            while len(open_ones) > most:
                heard += open_ones[0].heard
                open_ones.pop(0).close()
            time.sleep(0.005)
        return [heard + b"".join(connection.heard for connection in open_ones), times]

    return function


def flood(seconds, most=3000):
    """Holds so many connections to the doors of the namespace, and says nothing. How many came about."""

    def function(ready):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most + 100,) * 2)
        held, times = [], 0
        ready()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for address, port in sorted(doors()):
                for _ in range(100):
                    with contextlib.suppress(OSError):
                        held.append(wire.connect(address, port, 0.2))
                        times += 1
                    while len(held) > most:
                        held.pop(0).close()
        return times

    return function


def claim(secrets, seconds, rank=3):
    """Comes to every door as a rank, with tokens that can be computed, by both versions, and stays. (places it was given, what it
    heard)"""

    def function(ready):
        given, connections, seen = [], [], set()
        ready()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            fresh = doors() - seen
            seen |= fresh
            for (address, port), secret, version in itertools.product(sorted(fresh), secrets, (1, 2)):
                with contextlib.suppress(OSError):
                    connections.append(wire.connect(address, port))
                    if claim_one(connections[-1], secret, version, rank):
                        given.append(f"{address}:{port} took {secret!r} of version {version}")
            for connection in connections:
                with contextlib.suppress(OSError):
                    connection.hear(0.001)
        return [given, b"".join(connection.heard for connection in connections)]

    return function


def claim_one(connection, secret, version, rank):
    """Was it taken for the rank?"""
    if version == 1:
        connection.send(wire.HELLO, wire.hello_1(wire.token_1(secret), rank), protocol=1)
    elif wire.knock(connection, secret):
        connection.send(wire.HELLO, wire.hello(rank))
    return connection.get(0.1)[0] == wire.ACCEPTED


# ---- Strangers who have the port first: function(connection) of each who comes.


def serve_1(connection, came):
    """As a rendezvous of version 1, which welcomes all: ranks believe it if they ask for no proof."""
    kind, body = connection.get(2)
    if kind != wire.HELLO:
        return
    reader = wire.Unpack(body[16:])
    reader.text()
    rank, _, pid = reader.get("iii")
    host, address = reader.text(), reader.text()
    came[rank] = (connection, pid, host, address, reader.get("H"))
    connection.send(wire.ACCEPTED, struct.pack("<i", 1) + wire.text("stranger"), protocol=1)
    if len(came) < 4:
        return
    for rank, (to, *_) in came.items():
        partners = b"".join(struct.pack("<ii", r, p) + wire.text(h) + wire.text(a) + struct.pack("<H", d)
                            for r, (_, p, h, a, d) in came.items() if r != rank)
        to.send(wire.WELCOME, wire.text("stranger") + b"S" * 16 + struct.pack("<I", len(came) - 1) + partners, protocol=1)
        to.send(wire.ALL_CONNECTED, protocol=1)


def serve_2(connection, _):
    """As one of version 2, with a token that is guessed."""
    kind, body = connection.get(2)
    if kind == wire.KNOCK:
        wire.answer_knock(connection, body, "guess")
        connection.get(2)
        connection.send(wire.ACCEPTED, struct.pack("<i", 1) + wire.text("stranger"))


def refuse(connection, _):
    connection.get(2)
    connection.send(wire.REFUSED, wire.status(1, "stranger: go away\x1b[2J" + "x" * 5000))


def echo(connection, _):
    """Sends back what it hears: a challenge must not answer itself."""
    while connection.hear(2):
        connection.socket.sendall(connection.heard)


SQUATS = {
    "silence": lambda connection, _: None,
    "goes away": lambda connection, _: connection.close(),
    "garbage": lambda connection, _: connection.socket.sendall(b"\xff" * 4000),
    "serves by version 1": serve_1,
    "serves by version 2": serve_2,
    "refuses": refuse,
    "echo": echo,
}


def squat(name, port, seconds):
    """Listens at the port of all addresses for so long. What it heard."""

    def function(ready):
        door = socket.socket()
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(("0.0.0.0", port))
        door.listen(64)
        door.settimeout(0.05)
        ready()
        until, guests, came = time.monotonic() + seconds, [], {}
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                guests.append(wire.Connection(door.accept()[0]))
                SQUATS[name](guests[-1], came)
            for guest in guests:
                with contextlib.suppress(OSError):
                    guest.hear(0.001)
        return b"".join(guest.heard for guest in guests)

    return function
