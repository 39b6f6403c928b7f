"""A rank that knows the token, speaks the protocol, and lies: Liar takes the last rank's part, LyingServer the rendezvous's.

A lie is a function of the liar at a stage; it may raise Silence, after which the liar keeps its connections and says no more.
"""

import contextlib
import os
import socket
import struct
import time

import wire

RANK = 3  # the last of four ranks, which every other rank calls
NASTY = "\x1b[2J\x07evil\r\nrank 1: all is well\x00\x9b\u202e\udcff"  # control characters, an escape, a direction mark, no UTF-8
LONG = 60000


class Silence(Exception):
    pass


def listen(address):
    door = socket.create_server((address, 0))
    door.settimeout(10)
    return door


class Liar:
    """`hello`: fields of its hello that differ. `lies`: functions by stage. `mine`: what it gives to all-gather number k, made
    from what it should give: in the first its own host, and then what another rank gave, which may be a lie too."""

    def __init__(self, address, own_address, secret, hello=None, lies=None, mine=None):
        self.address, self.own_address, self.secret = address, own_address, secret
        self.hello, self.lies, self.mine = hello or {}, lies or {}, mine or (lambda number, blob: blob)
        self.challenge, self.peers, self.calls = os.urandom(wire.DIGEST), {}, 0

    def stage(self, name):
        self.lies.get(name, lambda liar: None)(self)

    def play(self):
        with contextlib.suppress(Silence, OSError):
            self.meet()
            self.connect()
            while True:
                self.gather()
        self.keep_still()

    def meet(self):
        self.door = listen(self.own_address)
        host, port = self.address
        until = time.monotonic() + 3
        while True:
            try:
                self.server = wire.connect(host, port)
                break
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)
        self.stage("knock")
        if not wire.knock(self.server, self.secret):
            raise Silence
        self.stage("hello")
        fields = {"rank": RANK, "address": self.own_address, "port": self.door.getsockname()[1], "challenge": self.challenge,
                  "pid": os.getpid()}
        self.server.send(wire.HELLO, wire.hello(**fields | self.hello))
        self.stage("said hello")
        while True:
            kind, body = self.server.get(10)
            if kind == wire.ACCEPTED:
                self.stage("accepted")
            elif kind == wire.WELCOME:
                self.job, partners = wire.read_welcome(body)
                self.partners = {one["rank"]: one for one in partners}
                self.stage("welcome")
                return
            else:
                raise Silence

    def connect(self):
        while len(self.peers) < len(self.partners):
            caller = wire.Connection(self.door.accept()[0])
            kind, body = caller.get()
            if kind != wire.PARTNER:
                continue
            rank, _ = struct.unpack_from("<ii", body)
            caller.seal = wire.seal_of_partners(self.secret, self.job, RANK, self.challenge, self.partners[rank])
            caller.seal.heard = 1  # its first message has been opened
            self.peers[rank] = caller
            self.stage("partner")
            caller.send(wire.PARTNER_ACCEPTED)
        self.stage("partners")
        self.server.send(wire.CONNECTED)
        if self.server.get(10)[0] != wire.ALL_CONNECTED:
            raise Silence

    def gather(self):
        """Ranks 1, 2, 4, ... away pass on what they have: this rank's first blobs go down, those of higher ranks come."""
        number = self.calls
        self.calls += 1
        self.stage(f"gather {number}")
        ranks, blobs, round_number, away = len(self.partners) + 1, [], 0, 1
        while away < ranks:
            count = min(away, ranks - away)
            theirs = self.data((RANK + away) % ranks, round_number)
            if not blobs:
                # The first all-gather tells hosts apart, and where doors are.
                true = wire.host("the liar's host") if number == 0 else theirs[0] if theirs else b""
                blobs = [self.mine(number, true)]
            body = b"".join(wire.text(blob) for blob in blobs[:count]) if theirs else b""
            self.send_data((RANK + ranks - away) % ranks, round_number, body)
            blobs += theirs
            round_number, away = round_number + 1, 2 * away

    def data(self, rank, round_number):
        """The blobs of the call; [] of a barrier."""
        while True:
            kind, body = self.peers[rank].get(10)
            if kind is None or kind in (wire.FAIL, wire.LEFT):
                raise Silence
            if kind != wire.DATA:
                continue
            reader, blobs = wire.Unpack(body), []
            if reader.get("QI") != (self.calls, round_number):
                continue
            while reader.left:
                blobs.append(reader.text())
            return blobs

    def send_data(self, rank, round_number, body, call=None):
        self.peers[rank].send(wire.DATA, struct.pack("<QI", self.calls if call is None else call, round_number) + body)

    def to_all(self, kind, body=b"", times=1, **head):
        for peer in self.peers.values():
            for _ in range(times):
                peer.send(kind, body, **head)

    def keep_still(self):
        """The others find silence, not an end."""
        until = time.monotonic() + 20
        ends = [peer for peer in [getattr(self, "server", None), *self.peers.values()] if peer]
        while ends and time.monotonic() < until:
            ends = [end for end in ends if self.still(end)]

    @staticmethod
    def still(end):
        end.left = end.heard = b""
        try:
            end.socket.settimeout(0.05)
            return bool(end.socket.recv(1 << 20))
        except TimeoutError:
            return True
        except OSError:
            return False


def silence(_):
    raise Silence


def end(_):
    os._exit(0)


def raw(data):
    """Bytes in the place of a sealed message to the rendezvous."""

    def lie(liar):
        liar.server.socket.sendall(data)
        raise Silence

    return lie


def to_server(kind, body=b"", then=silence):
    def lie(liar):
        liar.server.send(kind, body)
        then(liar)

    return lie


def to_all(kind, body=b"", times=1, then=silence, **head):
    def lie(liar):
        liar.to_all(kind, body, times, **head)
        then(liar)

    return lie


def unsealed(kind, body):
    def lie(liar):
        for peer in liar.peers.values():
            peer.socket.sendall(wire.encode(kind, body))
        raise Silence

    return lie


def go_on(_):
    pass


def much(liar):
    """200 MiB of data for rank 0 alone, to be there in time; the proof behind it is wrong."""
    liar.peers[0].socket.sendall(wire.encode(wire.DATA, length=200 << 20))
    for _ in range(200):
        liar.peers[0].socket.sendall(bytes(1 << 20))
    raise Silence


def note(number):
    return wire.text(str(number)) + wire.text(b"x" * 5000)


def of_calls(calls, round_number=0, body=b"", then=silence):
    def lie(liar):
        for call in calls:
            for rank in liar.peers:
                liar.send_data(rank, round_number, body, call=call)
        then(liar)

    return lie


HELLOS = {
    "rank -1": {"rank": -1},
    "rank 4 of 4": {"rank": 4},
    "rank 2^31 - 1": {"rank": (1 << 31) - 1},
    "another's rank": {"rank": 1},
    "a group of 0": {"ranks": 0},
    "a group of 5": {"ranks": 5},
    "a group of 2^31 - 1": {"ranks": (1 << 31) - 1},
    "another version": {"product": "9.9.9"},
    "a nasty version": {"product": NASTY * 100},
    "a nasty host": {"host": NASTY},
    "a long host": {"host": "h" * LONG},
    "a nasty address": {"address": NASTY},
    "an address that is a name": {"address": "localhost"},
    "an address that nobody has": {"address": "255.255.255.255"},
    "no address": {"address": ""},
    "port 0": {"port": 0},
    "a port that nobody has": {"port": 9},
    "no time left": {"left": 0},
    "less than no time left": {"left": -(1 << 63)},
    "a negative limit": {"limit": -1, "left": -1},
}
HEART = struct.pack("<QQi", 1, 1, 0)
LIES = {
    "says nothing after its hello": {"said hello": silence},
    "ends after its hello": {"said hello": end},
    "no hello": {"hello": to_server(wire.CONNECTED)},
    "half a hello": {"hello": to_server(wire.HELLO, wire.hello(RANK)[:30])},
    "a hello with a text that is longer than it": {"hello": to_server(wire.HELLO, struct.pack("<I", 1 << 31))},
    "a hello without seal": {"hello": raw(wire.encode(wire.HELLO, wire.hello(RANK)))},
    "a hello with more behind": {"hello": to_server(wire.HELLO, wire.hello(RANK) + b"x" * 500)},
    "two hellos": {"said hello": to_server(wire.HELLO, wire.hello(RANK))},
    "garbage after its hello": {"said hello": raw(b"\xff" * 5000)},
    "2^64 - 1 bytes": {"accepted": raw(wire.encode(wire.CONNECTED, length=(1 << 64) - 1))},
    "a message that is not known": {"accepted": to_server(99, b"x")},
    "cannot come, and says it nastily": {"accepted": to_server(wire.FAIL, wire.status(1, NASTY + "x" * LONG))},
    "a failure that cannot be read": {"accepted": to_server(wire.FAIL, b"\1")},
    "answers no partner": {"partner": silence},
    "ends when partners call": {"partner": end},
    "refuses partners": {"partner": to_all(wire.REFUSED, wire.status(1, NASTY))},
    "answers partners without seal": {"partner": unsealed(wire.PARTNER_ACCEPTED, bytes(wire.DIGEST))},
    "never connected": {"partners": silence},
    "partners failed, nastily": {"partners": to_server(wire.FAIL, wire.status(2, NASTY * 50))},
    "half a heartbeat": {"gather 1": to_all(wire.HEARTBEAT, HEART[:10])},
    "a heartbeat for rank -1": {"gather 1": to_all(wire.HEARTBEAT, struct.pack("<QQi", 1, 1, -1))},
    "a heartbeat for rank 1000": {"gather 1": to_all(wire.HEARTBEAT, struct.pack("<QQi", 1, 1, 1000))},
    "progress of 2^64 - 1": {"gather 1": to_all(wire.HEARTBEAT, struct.pack("<QQi", (1 << 64) - 1, 1, 0))},
    "20,000 heartbeats": {"gather 1": to_all(wire.HEARTBEAT, HEART, times=20000)},
    "a heartbeat without seal": {"gather 1": unsealed(wire.HEARTBEAT, HEART + bytes(wire.DIGEST))},
    "another version's heartbeat": {"gather 1": to_all(wire.HEARTBEAT, HEART, protocol=9)},
    "half a note": {"gather 1": to_all(wire.NOTE, wire.text("k") + struct.pack("<I", 1 << 30))},
    "a note of 8 MiB": {"gather 1": to_all(wire.NOTE, wire.text("k") + wire.text(b"x" * (8 << 20)))},
    "10,000 notes": {"gather 1": lambda liar: [to_all(wire.NOTE, note(k), then=go_on)(liar) for k in range(10000)]},
    "rank 77 left": {"gather 1": to_all(wire.LEFT, struct.pack("<i", 77))},
    "rank -1 left": {"gather 1": to_all(wire.LEFT, struct.pack("<i", -1))},
    "rank 1 left": {"gather 1": to_all(wire.LEFT, struct.pack("<i", 1))},
    "left, and goes on": {"gather 1": to_all(wire.LEFT, struct.pack("<i", RANK), then=go_on)},
    "half a leaving": {"gather 1": to_all(wire.LEFT, b"\1")},
    "a nasty failure": {"gather 1": to_all(wire.FAIL, wire.status(6, NASTY))},
    "a failure of 4 MiB": {"gather 1": to_all(wire.FAIL, wire.status(6, "x" * (4 << 20)))},
    "a failure with code 0": {"gather 1": to_all(wire.FAIL, wire.status(0, "all is well"))},
    "a failure with code 60000": {"gather 1": to_all(wire.FAIL, wire.status(60000, "?"))},
    "half a failure": {"gather 1": to_all(wire.FAIL, b"\1")},
    "data of no call": {"gather 1": to_all(wire.DATA, b"abc")},
    "data of a call that is over": {"gather 1": of_calls([0, 1])},
    "data of a call far ahead": {"gather 1": of_calls([1 << 63])},
    "data of 100,000 calls": {"gather 1": of_calls(range(2, 100002), body=b"x" * 1000)},
    "data of round 9": {"gather 1": of_calls([2], round_number=9)},
    "data of 100,000 rounds": {"gather 1": lambda liar: [of_calls([2], k, b"x" * 1000, go_on)(liar) for k in range(100000)]},
    "data twice": {"gather 1": of_calls([2, 2], body=wire.text(b"x"))},
    "data of 200 MiB": {"gather 1": much},
    "a length of 2^62": {"gather 1": to_all(wire.DATA, b"", length=1 << 62)},
    "a length of 250 MiB, and nothing": {"gather 1": to_all(wire.DATA, b"", length=250 << 20)},
    "a hello among data": {"gather 1": to_all(wire.HELLO, wire.hello(RANK))},
    "a message that partners do not know": {"gather 1": to_all(99, b"x" * 99)},
    "garbage among data": {"gather 1": lambda liar: [peer.socket.sendall(b"\xff" * 99) for peer in liar.peers.values()]},
}


# False data for an all-gather: each function makes the liar's data from the true data.
BLOBS = {
    "nothing": lambda blob: b"",
    "half": lambda blob: blob[: len(blob) // 2],
    "a byte less": lambda blob: blob[:-1],
    "more": lambda blob: blob + b"\0" * 100,
    "zeros": lambda blob: bytes(len(blob)),
    "ones": lambda blob: b"\xff" * len(blob),
    "other bytes": lambda blob: bytes(byte ^ 0x55 for byte in blob),
    "nasty bytes": lambda blob: (NASTY.encode("utf-8", "surrogateescape") * 500)[: max(200, len(blob))],
    "20 MiB": lambda blob: b"x" * (20 << 20),
}
GATHERS = 7


class LyingServer:
    """Serves the rendezvous as rank 0's process would; `lie(server, came)` does the rest when all others have come."""

    def __init__(self, address, port, secret, lie, ranks=4):
        self.door = socket.create_server((address, port))
        self.door.settimeout(5)
        self.secret, self.lie, self.ranks = secret, lie, ranks

    def play(self):
        came = {}
        with contextlib.suppress(Silence, OSError):
            while len(came) < self.ranks - 1:
                guest = wire.Connection(self.door.accept()[0])
                wire.answer_knock(guest, guest.get()[1], self.secret)
                kind, body = guest.get()
                if kind == wire.HELLO:
                    guest.send(wire.ACCEPTED, struct.pack("<i", os.getpid()) + wire.text("liar"))
                    came[wire.read_hello(body)["rank"]] = (guest, wire.read_hello(body))
            self.lie(self, came)
        until = time.monotonic() + 20
        ends = [guest for guest, _ in came.values()]
        while ends and time.monotonic() < until:
            ends = [one for one in ends if Liar.still(one)]


def partners_of(came, rank, change=None):
    """The other ranks that came, and rank 0, which is the liar, as partners."""
    nobody = {"rank": 0, "pid": 1, "host": "liar", "address": "127.0.0.1", "port": 9, "challenge": bytes(wire.DIGEST)}
    every = [nobody | (change or {})] + [hello for r, (_, hello) in sorted(came.items()) if r != rank]
    return every


def to_guests(kind, body):
    def lie(_, came):
        for rank, (guest, _hello) in came.items():
            guest.send(kind, body(came, rank) if callable(body) else body)

    return lie


def welcome_with(change=None, job="job"):
    return to_guests(wire.WELCOME, lambda came, rank: wire.welcome(job, partners_of(came, rank, change)))


SERVERS = {
    "refuses nastily": to_guests(wire.REFUSED, wire.status(1, NASTY + "x" * LONG)),
    "a refusal that cannot be read": to_guests(wire.REFUSED, b""),
    "a refusal with code 0": to_guests(wire.REFUSED, wire.status(0, "")),
    "never welcomes": lambda *_: None,
    "a welcome that cannot be read": to_guests(wire.WELCOME, b"\1\2"),
    "2^32 - 1 partners": to_guests(wire.WELCOME, wire.text("job") + b"\xff\xff\xff\xff" + b"\0" * 4000),
    "no partners": to_guests(wire.WELCOME, wire.welcome("job", [])),
    "a partner of rank 77": welcome_with({"rank": 77}),
    "a partner of rank -1": welcome_with({"rank": -1}),
    "a partner with a nasty host": welcome_with({"host": NASTY, "rank": 9}),
    "a partner with a nasty address": welcome_with({"address": NASTY, "rank": 9}),
    "a long job": welcome_with(job="j" * LONG),
    "a message that is not known": to_guests(99, b"x"),
    "accepts again and again": lambda _, came: [guest.send(wire.ACCEPTED, struct.pack("<i", 1) + wire.text(NASTY))
                                                for guest, _hello in came.values() for _ in range(1000)],
}
