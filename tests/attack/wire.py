"""XCCL's bootstrap protocol (runtime/bootstrap/wire.h, hello.cc, proof.cc) as strangers and liars speak it.

In version 2 both ends of a connection prove that they know the token, by a keyed hash behind every message. Version 1, which sent
the token, is here as far as strangers need it to try whether it is still taken.
"""

import hashlib
import hmac
import os
import socket
import struct
import time

MAGIC, PROTOCOL = 0x4C434358, 2
(HELLO, ACCEPTED, REFUSED, WELCOME, PARTNER, PARTNER_ACCEPTED, CONNECTED, ALL_CONNECTED, HEARTBEAT, DATA, LEFT, FAIL, NOTE,
 KNOCK, CHALLENGE) = range(1, 16)
DIGEST = 32
FOREVER = (1 << 63) - 1
VERSION = "0.1.0"  # as `xccl-synth --version` says; World sets it


# ---- Messages: a head of magic, version, type and length, and a body.


def encode(kind, body=b"", protocol=PROTOCOL, magic=MAGIC, length=None):
    return struct.pack("<IHHQ", magic, protocol, kind, len(body) if length is None else length) + body


def text(value):
    value = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    return struct.pack("<I", len(value)) + value


class Unpack:
    def __init__(self, body):
        self.left = body

    def get(self, form):
        values = struct.unpack_from("<" + form, self.left)
        self.left = self.left[struct.calcsize("<" + form):]
        return values if len(values) > 1 else values[0]

    def bytes(self, count):
        value, self.left = self.left[:count], self.left[count:]
        return value

    def text(self):
        return self.bytes(self.get("I"))


def host(identity, name="liar", pid=666, address="127.0.0.1", port=9):
    return text(identity) + text(name) + struct.pack("<i", pid) + text(address) + struct.pack("<H", port)


def hello(rank, ranks=4, host="liar", address="127.0.0.1", port=9, product=None, pid=666, challenge=bytes(DIGEST), limit=FOREVER,
          left=FOREVER):
    who = text(product or VERSION) + struct.pack("<iii", rank, ranks, pid) + text(host) + text(address) + struct.pack("<H", port)
    return who + challenge + struct.pack("<qq", limit, left)


def read_hello(body):
    reader = Unpack(body)
    product, (rank, ranks, pid) = reader.text(), reader.get("iii")
    return {"product": product, "rank": rank, "ranks": ranks, "pid": pid, "host": reader.text(), "address": reader.text(),
            "port": reader.get("H"), "challenge": reader.bytes(DIGEST)}


def welcome(job, partners):
    """`partners`: as read_welcome gives them."""
    body = text(job) + struct.pack("<I", len(partners))
    for one in partners:
        body += struct.pack("<ii", one["rank"], one["pid"]) + text(one["host"]) + text(one["address"])
        body += struct.pack("<H", one["port"]) + one["challenge"]
    return body


def read_welcome(body):
    reader = Unpack(body)
    job, partners = reader.text(), []
    for _ in range(reader.get("I")):
        rank, pid = reader.get("ii")
        partners.append({"rank": rank, "pid": pid, "host": reader.text(), "address": reader.text(), "port": reader.get("H"),
                         "challenge": reader.bytes(DIGEST)})
    return job, partners


def status(code, message):
    return struct.pack("<H", code) + text(message)


# ---- Proofs


def keyed(key, use, data=b""):
    return hmac.digest(key, use.encode() + b"\0" + data, hashlib.sha256)


def key_of(secret):
    return hmac.digest(b"XCCL", secret.encode("utf-8", "surrogateescape"), hashlib.sha256)


class Seal:
    def __init__(self, key, calls):
        own, other = ("caller", "door") if calls else ("door", "caller")
        self.sends, self.hears, self.sent, self.heard = keyed(key, own), keyed(key, other), 0, 0

    def close(self, kind, body=b""):
        closed = body + hmac.digest(self.sends, struct.pack("<QH", self.sent, kind) + body, hashlib.sha256)
        self.sent += 1
        return closed

    def open(self, kind, body):
        """The body without its proof; None where that is wrong."""
        expected = hmac.digest(self.hears, struct.pack("<QH", self.heard, kind) + body[:-DIGEST], hashlib.sha256)
        if not hmac.compare_digest(body[-DIGEST:], expected):
            return None
        self.heard += 1
        return body[:-DIGEST]


class Connection:
    """A socket whose messages are sealed once there is a key. `heard`: every byte that came."""

    def __init__(self, end):
        self.socket, self.left, self.heard, self.seal = end, b"", b"", None
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, kind, body=b"", **head):
        self.socket.sendall(encode(kind, self.seal.close(kind, body) if self.seal else body, **head))

    def get(self, timeout_s=5):
        """(type, body) of the next message; (None, b"") at the end or after the time. A body with a wrong proof is whole."""
        until = time.monotonic() + timeout_s
        while True:
            if len(self.left) >= 16:
                _, _, kind, length = struct.unpack("<IHHQ", self.left[:16])
                if len(self.left) >= 16 + length:
                    body, self.left = self.left[16:16 + length], self.left[16 + length:]
                    opened = self.seal.open(kind, body) if self.seal else body
                    return kind, body if opened is None else opened
            if not self.hear(until - time.monotonic()):
                return None, b""

    def hear(self, timeout_s):
        self.socket.settimeout(max(0.001, timeout_s))
        try:
            came = self.socket.recv(1 << 20)
        except OSError:
            return False
        self.left += came
        self.heard += came
        return bool(came)

    def close(self):
        self.socket.close()


def connect(address, port, timeout_s=5):
    end = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    end.settimeout(timeout_s)
    end.connect((address, port))
    return Connection(end)


def knock(connection, secret):
    """Challenges the rendezvous and takes its challenge; False where it gives none."""
    mine = os.urandom(DIGEST)
    connection.send(KNOCK, mine)
    kind, theirs = connection.get(0.5)
    if kind != CHALLENGE:
        return False
    connection.seal = Seal(keyed(key_of(secret), "rendezvous", mine + theirs), calls=True)
    return True


def answer_knock(connection, body, secret):
    mine = os.urandom(DIGEST)
    connection.send(CHALLENGE, mine)
    connection.seal = Seal(keyed(key_of(secret), "rendezvous", body + mine), calls=False)


def seal_of_partners(secret, job, rank, own_challenge, partner):
    calls = partner["rank"] > rank
    lower, higher = (own_challenge, partner["challenge"]) if calls else (partner["challenge"], own_challenge)
    return Seal(keyed(keyed(key_of(secret), "job", job), "partners", lower + higher), calls)


# ---- Version 1


def mix(seed):
    """The first number of xoshiro256** that SplitMix64 seeds (base/random.h)."""
    every, state, words = (1 << 64) - 1, seed, []
    for _ in range(4):
        state = (state + 0x9E3779B97F4A7C15) & every
        word = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & every
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & every
        words.append(word ^ (word >> 31))
    product = (words[1] * 5) & every
    return ((((product << 7) | (product >> 57)) & every) * 9) & every


def hash_of(name):
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & ((1 << 64) - 1)
    return mix(value)


def port_of(job):
    """The port at which ranks of a job meet that have no other (PortOf)."""
    return 10000 + hash_of(job) % 20000


def token_1(secret):
    return struct.pack("<QQ", hash_of(f"first half of {secret}"), hash_of(f"second half of {secret}"))


def hello_1(token, rank, ranks=4):
    return (token + text(VERSION) + struct.pack("<iii", rank, ranks, 666) + text("stranger") + text("127.0.0.1") +
            struct.pack("<Hqq", 9, FOREVER, FOREVER))
