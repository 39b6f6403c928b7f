"""The hosts, programs and books of an attack.

Every rank and stranger runs in network namespaces that are made for it (tools/net/hosts.sh), so that nothing else on this machine
is reached, in the way, or counted. World makes them, and Place says where the ranks of a group are.
"""

import contextlib
import ctypes
import fcntl
import functools
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import time
import typing

import wire

HERE = pathlib.Path(__file__).absolute().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tools/net"))

from shapes import NET, may_make_hosts, star, tool  # noqa: E402, F401

RANKS = 4  # ranks of every group, two on a host
CLONE_NEWNET = 0x40000000
NOBODY = 65534  # the user of strangers


class Weather(typing.NamedTuple):
    """How the forwarder hurts frames: its arguments; nothing: no forwarder."""

    name: str
    words: tuple = ()


FINE = Weather("fine")
STORMS = (
    Weather("lossy", ("loss=1",)),
    Weather("far", ("delay=20000",)),
    Weather("doubled", ("double=5", "late=5")),
    Weather("flipped", ("flip=1",)),
    Weather("all", ("delay=2000", "loss=1", "double=1", "late=1", "flip=1")),
)


class Place(typing.NamedTuple):
    """Where the ranks of a group are, and over what they talk."""

    name: str
    spaces: tuple  # each rank's namespace
    host_ids: tuple  # each rank's XCCL_HOST_ID; None: not set
    address: str  # address of the rendezvous
    interface: str


libc = ctypes.CDLL(None, use_errno=True)


def enter(space):
    with open(f"/run/netns/{space}") as there:
        if libc.setns(there.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns {space}")


@contextlib.contextmanager
def inside(space):
    """This thread is in the namespace meanwhile; the sockets that it opens stay there."""
    with open("/proc/thread-self/ns/net") as home:
        enter(space)
        try:
            yield
        finally:
            libc.setns(home.fileno(), CLONE_NEWNET)


def compute_checksums(space, device):
    """Frames of the device have their checksums, so that bits which turn over are found, and are no longer than its MTU."""
    SIOCETHTOOL = 0x8946
    RX_CHECKSUMS, TX_CHECKSUMS, TSO, GSO, GRO = 0x15, 0x17, 0x1F, 0x24, 0x2C  # ETHTOOL_S* of linux/ethtool.h
    with inside(space), socket.socket() as any_socket:
        for feature in (GRO, GSO, TSO, TX_CHECKSUMS, RX_CHECKSUMS):
            value = ctypes.create_string_buffer(struct.pack("=II", feature, 0))
            request = struct.pack("16sP8x", device.encode(), ctypes.addressof(value))
            fcntl.ioctl(any_socket, SIOCETHTOOL, request)


class Network:
    """Two hosts in namespaces, NAME-h0 and NAME-h1; in bad weather the forwarder is the cable between them."""

    def __init__(self, name, weather, forward):
        self.name, self.weather, self.forward, self.cable = name, weather, forward, None

    def __enter__(self):
        subprocess.run([f"{NET}/hosts.sh", "up", self.name, *star("attack", [0, 0], RANKS // 2).up], check=True)
        self.spaces = tuple(f"{self.name}-h{h}" for h in range(2))
        listed = subprocess.run([f"{NET}/hosts.sh", "list", self.name], check=True, capture_output=True, text=True)
        self.addresses = tuple(line.split()[1] for line in listed.stdout.splitlines())
        if self.weather != FINE:
            self.storm()
        return self

    def storm(self):
        middle = f"{self.name}-sw0"
        for device, space in (("p0", middle), ("p1", middle), ("eth0", self.spaces[0]), ("eth0", self.spaces[1])):
            compute_checksums(space, device)
        for port in ("p0", "p1"):
            subprocess.run(["ip", "-n", middle, "link", "set", port, "nomaster"], check=True)
        self.cable = subprocess.Popen(
            ["ip", "netns", "exec", middle, self.forward, "p0", "p1", *self.weather.words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        if self.cable.stdout.readline() != "ready\n":
            raise RuntimeError("the forwarder did not start")

    def __exit__(self, *_):
        if self.cable is not None:
            print(f"{self.weather.name}: {self.cable.communicate()[0].strip()}", flush=True)
        subprocess.run([f"{NET}/hosts.sh", "down", self.name], check=True)

    def cut(self, host, state):
        """The host's cable is pulled ("down") or put in again ("up") at the switch; the host's routes stay."""
        subprocess.run(["ip", "-n", f"{self.name}-sw0", "link", "set", f"p{host}", state], check=True)

    # One host, whose ranks share memory; one that says to be two; two.
    def memory(self):
        return Place("memory", self.spaces[:1] * RANKS, (None,) * RANKS, "127.0.0.1", "")

    def loopback(self):
        return Place("loopback", self.spaces[:1] * RANKS, ("a", "a", "b", "b"), "127.0.0.1", "lo")

    def hosts(self):
        spaces = tuple(space for space in self.spaces for _ in range(RANKS // 2))
        return Place("hosts", spaces, (None,) * RANKS, self.addresses[0], "")


C = ("cc", "-std=c11", "-D_GNU_SOURCE")
TOPOLOGY = star("attack", [8000, 8000], RANKS // 2)  # fast, because attacks do not try plans


class World:
    """Programs, books and networks; everything is in `folder` and goes with it."""

    def __init__(self, options, folder):
        self.synth, self.library = os.path.abspath(options.binary), os.path.abspath(options.library)
        self.folder, self.seed = pathlib.Path(folder), options.seed
        self.networks, self.open = {}, contextlib.ExitStack()
        self.next_port = 15000

    def __enter__(self):
        wire.VERSION = tool(self.synth, ["--version"]).split()[1]
        self.folder.chmod(0o711)  # strangers run a program of it
        self.make_books()
        (self.folder / "home").mkdir()
        return self

    def __exit__(self, *_):
        self.open.close()

    def compile(self, name, *command):
        subprocess.run([*command, "-O1", "-o", self.folder / name], check=True, cwd=HERE)
        return str(self.folder / name)

    @functools.cached_property
    def rank(self):
        folder, library = os.path.split(self.library)
        return self.compile("rank", *C, "rank.c", f"-I{ROOT}/runtime", f"-L{folder}", f"-l:{library}", f"-Wl,-rpath,{folder}")

    @functools.cached_property
    def stranger(self):
        return self.compile("stranger", *C, "stranger.c", "-lfabric")

    @functools.cached_property
    def forward(self):
        return self.compile("forward", "c++", "-std=c++20", "forward.cc")

    def make_books(self):
        """The books `one` and `two` have wirings of their own."""
        self.books = self.folder / "books"
        topology = self.folder / "hosts.xml"
        topology.write_text(TOPOLOGY.xml())
        for book, engine in (("one", "ring"), ("two", "tree")):
            (self.books / book).mkdir(parents=True)
            tool(self.synth, ["plan", str(topology), "-c", "allreduce", "-s", "64KiB", "-e", engine,
                              "-o", str(self.books / book / "allreduce.plan.json")])
            index = {"format": 1, "plans": [{"file": "allreduce.plan.json", "collective": "allreduce", "ranks": RANKS}]}
            (self.books / book / "index.json").write_text(json.dumps(index))
        self.plans = [str(self.books / book / "allreduce.plan.json") for book in ("one", "two")]

    def network(self, weather=FINE):
        if weather not in self.networks:
            forward = self.forward if weather != FINE else None
            name = f"y{os.getpid() % 1000}{'abcdefg'[len(self.networks)]}"
            self.networks[weather] = self.open.enter_context(Network(name, weather, forward))
        return self.networks[weather]

    def port(self):
        """A port for a rendezvous, which no group of this world has had."""
        self.next_port += 1
        return self.next_port

    def left_behind(self):
        """What groups have left in the namespaces; [] after what just ends has had a second."""
        until = time.monotonic() + 1
        while True:
            found = [name for name in os.listdir("/dev/shm") if "xccl" in name]
            for network in self.networks.values():
                for space in network.spaces:
                    found += left_in(space)
            if not found or time.monotonic() > until:
                return found
            time.sleep(0.02)


def left_in(space):
    pids = subprocess.run(["ip", "netns", "pids", space], capture_output=True, text=True, check=True).stdout.split()
    found = [f"process {pid} on {space}" for pid in pids]
    with inside(space):
        for table in ("tcp", "tcp6", "unix"):
            for line in pathlib.Path(f"/proc/thread-self/net/{table}").read_text().splitlines():
                fields = line.split()
                if len(fields) > 3 and fields[3] == "0A" or "@xccl" in line:
                    found.append(f"socket on {space}: {line.strip()}")
    return found


def listeners(space, pid):
    """The TCP ports on which a process of the namespace listens, as (address in the kernel's hexadecimal, port)."""
    inodes = set()
    with contextlib.suppress(OSError):
        for file in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                inodes.add(os.readlink(f"/proc/{pid}/fd/{file}"))
    found = []
    with inside(space):
        for table in ("tcp", "tcp6"):
            for line in pathlib.Path(f"/proc/thread-self/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                    address, port = fields[1].split(":")
                    found.append((address, int(port, 16)))
    return found
