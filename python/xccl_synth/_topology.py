"""Machines: loaded, built in code, changed."""

from __future__ import annotations

import os
from typing import Annotated, Any, Dict, Iterable, List, NamedTuple, Optional, Tuple, Union

import numpy as np

from . import _xccl
from ._arguments import CONVERTED, Long, PathLike, parsed, path_of, whole_of
from ._border import border, border_class
from .errors import warn
from ._table import Column, Table

NodeRef = Union[int, str]
"""A node that a builder made, or a reference as in XML: ``"gpu:*"``, ``"h0/nvswitch"``."""
Bandwidth = Annotated[Union[str, float], CONVERTED]
Picoseconds = Annotated[Union[str, int], CONVERTED]


_MOST_DRAWN = 1024  # nodes that a notebook draws: half a megabyte


class Submachine(NamedTuple):
    """Some ranks of a machine and what joins them."""

    topology: "Topology"
    ranks: Column
    """By rank of ``topology``: its rank in the whole machine."""
    links: Column
    """By link of ``topology``: its number in the whole machine."""


class Failed(NamedTuple):
    """A machine without some cables."""

    topology: "Topology"
    cables: List[str]
    """The cables that failed: ``0<->1``."""


@border_class
class Topology:
    """A machine: GPUs (ranks), switches, NICs and CPUs, joined by directed links. It never changes.

    ``machine`` is a file (native XML, a dump of NCCL or RCCL, what ``nvidia-smi topo -m`` printed, or a fabric as ``ibnetdiscover`` or Slurm
    describe it), the name of a machine of the library (``dgx-a100``), or a short form (``torus:4x4x4@bandwidth=50GB/s,latency=500ns``). The other arguments are the command line's flags: what a
    file leaves out (``gpu_arch="sm90"``, ``gpus_per_switch``, ``gpu_busids``, ``pcie_gen``, ``nic_rate``, and ``link="bandwidth=25GB/s,latency=500ns"`` for another tool's file), copies of a host
    joined by their NICs (``hosts``, ``rails``, ``fabric``, ``nvlink_domain``), what stands at the ends of a fabric (``host=["dump.xml"]``, or
    ``host=["gpu[001-016]=dump.xml"]``; ``hosts_file``), the hosts of a job alone (``job="gpu[001-016]"``), switches that only forward (``plain_switches``), and damage (``without_links=["0->1"]``,
    ``degrades=["0->1=0.5"]``).

    Raises InvalidInput with the place in the file, or a near name.
    """

    __slots__ = ("_c", "_nodes", "_links")

    def __init__(
        self,
        machine: "Machine",
        *,
        gpu_arch: Optional[str] = None,
        gpus_per_switch: Optional[int] = None,
        gpu_busids: Optional[Iterable[str]] = None,
        pcie_gen: Optional[int] = None,
        nic_rate: Optional[str] = None,
        link: Optional[str] = None,
        hosts: Optional[int] = None,
        rails: Optional[bool] = None,
        fabric: Optional[str] = None,
        nvlink_domain: Optional[int] = None,
        host: Iterable[str] = (),
        hosts_file: Optional[PathLike] = None,
        job: Optional[str] = None,
        plain_switches: bool = False,
        without_links: Iterable[str] = (),
        degrades: Iterable[str] = (),
    ) -> None:
        options = _xccl.LoadOptions()
        options.gpu_arch = gpu_arch
        options.gpus_per_switch = gpus_per_switch
        options.gpu_busids = None if gpu_busids is None else ",".join(gpu_busids)
        options.pcie_gen = pcie_gen
        options.nic_rate = nic_rate
        options.link = link
        options.nvlink_domain = nvlink_domain
        options.hosts = hosts
        options.rails = rails is True
        options.no_rails = rails is False
        options.fabric = fabric
        options.host_kinds = list(host)
        options.hosts_file = None if hosts_file is None else os.fsdecode(hosts_file)
        options.job = job
        options.plain_switches = plain_switches
        options.without_links = list(without_links)
        options.degrades = list(degrades)
        if isinstance(machine, Topology):
            self._become(machine._c.modified(options))
        else:
            self._become(_xccl.Topology.load(path_of(machine, "machine"), options))

    def _become(self, made: "_xccl.Topology") -> None:
        self._c = made
        self._nodes: Optional[Table] = None
        self._links: Optional[Table] = None

    @classmethod
    def _of(cls, made: "_xccl.Topology") -> "Topology":
        topology = cls.__new__(cls)
        topology._become(made)
        return topology

    @staticmethod
    def from_xml(xml: str, name: str = "topology.xml") -> "Topology":
        """Reads native XML (docs/topologies.md). ``name`` opens the messages of errors."""
        return Topology._of(_xccl.Topology.from_xml(xml, name))

    @staticmethod
    def import_(
        path: PathLike,
        *,
        gpu_arch: Optional[str] = None,
        gpus_per_switch: Optional[int] = None,
        gpu_busids: Optional[Iterable[str]] = None,
        pcie_gen: Optional[int] = None,
        nic_rate: Optional[str] = None,
        link: Optional[str] = None,
        hosts: Optional[int] = None,
        rails: Optional[bool] = None,
        fabric: Optional[str] = None,
        nvlink_domain: Optional[int] = None,
        host: Iterable[str] = (),
        hosts_file: Optional[PathLike] = None,
        job: Optional[str] = None,
        plain_switches: bool = False,
    ) -> "Topology":
        """Reads a machine from a file, of whatever kind ``xccl-synth topo`` reads: a dump of NCCL or RCCL, what ``nvidia-smi topo -m``
        printed, native XML. The other arguments are those of Topology. What the reader had to guess, and what the file contradicts,
        is a warning (XcclWarning), and stays in ``warnings``. A name of the library is no file here."""
        name = os.fsdecode(path)
        file = name if os.sep in name else os.path.join(os.curdir, name)
        made = Topology(
            file,
            gpu_arch=gpu_arch,
            gpus_per_switch=gpus_per_switch,
            gpu_busids=gpu_busids,
            pcie_gen=pcie_gen,
            nic_rate=nic_rate,
            link=link,
            hosts=hosts,
            rails=rails,
            fabric=fabric,
            nvlink_domain=nvlink_domain,
            host=host,
            hosts_file=hosts_file,
            job=job,
            plain_switches=plain_switches,
        )
        warn(made.warnings)
        return made

    def to_xml(self) -> str:
        """Native XML with all families written out; reads back as the same machine."""
        return self._c.to_xml()

    def to_svg(self) -> str:
        """The machine drawn, as an SVG text: lines are as wide as their cables are fast. ``xccl-synth topo --format svg``. In a
        notebook a machine shows it by itself."""
        return self._c.to_svg()

    def to_dot(self) -> str:
        """The same for Graphviz, with the places of nodes; ``neato -n2 -Tsvg`` keeps them."""
        return self._c.to_dot()

    @property
    def name(self) -> str:
        """The machine's name."""
        return self._c.name

    @property
    def source(self) -> str:
        """Where its numbers come from; may be empty."""
        return self._c.source

    @property
    def gpu_arch(self) -> str:
        """The architecture of its GPUs, ``sm90``; empty where it is not known."""
        return self._c.gpu_arch

    @property
    def num_ranks(self) -> int:
        """GPUs; each is a rank."""
        return self._c.num_ranks

    @property
    def num_nodes(self) -> int:
        """GPUs, switches, NICs and CPUs."""
        return self._c.num_nodes

    @property
    def num_links(self) -> int:
        """Directed links: a cable is two."""
        return self._c.num_links

    @property
    def num_hosts(self) -> int:
        """Hosts."""
        return self._c.num_hosts

    @property
    def diameter(self) -> Optional[int]:
        """The most transfers that the way from one rank to another takes; None where some rank reaches another not at all."""
        return self._c.diameter

    @property
    def warnings(self) -> List[str]:
        """What a reader had to guess, and what a file contradicts."""
        return self._c.warnings

    @property
    def nodes(self) -> Table:
        """One row a node, by its number: ``name``, ``kind`` (gpu, switch, nic, cpu), ``host`` (empty: none), ``rank`` (-1: no
        GPU), ``multicast``, ``reduce``."""
        if self._nodes is None:
            self._nodes = Table(self._c.nodes())
        return self._nodes

    @property
    def links(self) -> Table:
        """One row a directed link, by its number: ``name``, ``source`` and ``target`` (numbers of nodes),
        ``bandwidth_bytes_per_s``, ``latency_ps``, ``overhead_ps``."""
        if self._links is None:
            self._links = Table(self._c.links())
        return self._links

    def neighbours(self, rank: int) -> Table:
        """The ranks that one rank reaches through no other GPU: ``rank``, ``bandwidth_bytes_per_s`` of the narrowest link on
        the best path, ``latency_ps`` along it, and ``path``, the numbers of its links."""
        return Table(self._c.neighbours(rank))

    def without_link(self, *links: str) -> "Topology":
        """The machine without these links: ``"A->B"`` for one direction, ``"A<->B"`` for both; all parallel links go."""
        return Topology(self, without_links=links)

    def degrade(self, link: str, factor: float) -> "Topology":
        """The machine with the bandwidth of the links ``"A->B"`` multiplied by a factor above 0, up to 1."""
        text = repr(factor) if not 1e-9 <= factor < 1e9 else f"{factor:.9f}".rstrip("0").rstrip(".")
        return Topology(self, degrades=[f"{link}={text}"])

    def submachine(self, ranks: Iterable[int]) -> Submachine:
        """These ranks, renumbered in ascending order, and the switches, NICs and CPUs between them."""
        topology, own, links = self._c.members_alone(list(ranks))
        return Submachine(Topology._of(topology), own, links)

    def fail_cables(self, cables: int, seed: Long = 0) -> Failed:
        """The machine without so many random cables."""
        topology, failed = self._c.fail_cables(cables, seed)
        return Failed(Topology._of(topology), failed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Topology) and self._c.equals(other._c)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Tuple[Any, ...]:
        return Topology._of, (self._c,)

    def _repr_svg_(self) -> Optional[str]:
        return self.to_svg() if self.num_nodes <= _MOST_DRAWN else None

    def __repr__(self) -> str:
        return f"<Topology {self.name}: {self.num_ranks} ranks, {self.num_hosts} hosts, {self.num_nodes} nodes, {self.num_links} links>"


Machine = Union[str, os.PathLike[str], Topology]
"""What has a machine: a file, a name of the library, a short form, or a Topology."""


@border_class
class TopologyBuilder:
    """A machine that grows node by node; ``build`` checks the whole.

    >>> builder = TopologyBuilder("pair")
    >>> a, b = builder.gpu(), builder.gpu()
    >>> builder.link(a, b, bandwidth="50GB/s", latency="500ns")
    >>> builder.build().num_ranks
    2

    Ranks are the GPUs in the order in which they are added. ``gpu_arch`` ("sm90") is that of all GPUs, and gives the
    machine's model.
    """

    def __init__(self, name: str, *, source: str = "", gpu_arch: str = "") -> None:
        self._c = _xccl.TopologyBuilder(name, source, gpu_arch)
        self._next: Dict[Tuple[str, Optional[str]], int] = {}
        self._begun = (name, source, gpu_arch)
        self._added: List[Tuple[str, Tuple[Any, ...]]] = []  # calls of _c, for a copy

    def gpu(self, id: Optional[str] = None, *, host: Optional[str] = None) -> int:
        """Adds a GPU, and returns its node. Without a host it is in the one implicit host."""
        return self._node("gpu", id, host)

    def gpus(self, count: int, *, host: Optional[str] = None) -> List[int]:
        """Adds several."""
        return [self.gpu(host=host) for _ in range(count)]

    def switch(
        self, id: Optional[str] = None, *, host: Optional[str] = None, multicast: bool = False, reduce: bool = False
    ) -> int:
        """Adds a switch: it may copy one input to many outputs, and add up many inputs."""
        return self._node("switch", id, host, multicast, reduce)

    def nic(self, id: Optional[str] = None, *, host: Optional[str] = None) -> int:
        """Adds a NIC."""
        return self._node("nic", id, host)

    def cpu(self, id: Optional[str] = None, *, host: Optional[str] = None) -> int:
        """Adds a CPU."""
        return self._node("cpu", id, host)

    def link(
        self,
        source: NodeRef,
        target: NodeRef,
        *,
        bandwidth: Bandwidth,
        latency: Picoseconds = 0,
        overhead: Picoseconds = 0,
        duplex: bool = True,
    ) -> "TopologyBuilder":
        """Joins two nodes, or all that two references name (``"gpu:*"``, ``"nvswitch"``), in both directions unless
        ``duplex=False``.

        ``bandwidth``: a text ("450GB/s", "400Gbit/s") or bytes per second. ``latency`` delays an arrival, ``overhead``
        occupies the link once a message: texts ("500ns") or picoseconds.
        """
        numbers = (_bandwidth(bandwidth), _latency("latency", latency), _latency("overhead", overhead), duplex)
        sources = self._c.resolve(source) if isinstance(source, str) else [source]
        targets = self._c.resolve(target) if isinstance(target, str) else [target]
        for tail in sources:
            for head in targets:
                self._add("link", tail, head, *numbers)
        return self

    def build(self) -> Topology:
        """The machine. Raises InvalidInput naming the node or link that is wrong."""
        return Topology._of(self._c.build())

    def _node(self, kind: str, id: Optional[str], host: Optional[str], multicast: bool = False, reduce: bool = False) -> int:
        number = self._next.get((kind, host), 0)
        self._next[kind, host] = number + 1
        name = id if id is not None else str(number) if kind == "gpu" else f"{kind}{number}"
        return int(self._add("node", kind, name, host, multicast, reduce))

    def _add(self, what: str, *arguments: Any) -> Any:
        made = getattr(self._c, what)(*arguments)
        self._added.append((what, arguments))
        return made

    def __reduce__(self) -> Tuple[Any, ...]:
        return _built_again, (self._begun, dict(self._next), list(self._added))


def _built_again(begun: Tuple[str, str, str], following: Dict[Tuple[str, Optional[str]], int], added: Any) -> TopologyBuilder:
    builder = TopologyBuilder(begun[0], source=begun[1], gpu_arch=begun[2])
    builder._next = following
    for what, arguments in added:
        builder._add(what, *arguments)
    return builder


def topology_of(machine: Machine) -> Topology:
    """A topology as it is, or whatever Topology takes."""
    return machine if isinstance(machine, Topology) else Topology(machine)


@border
def library() -> List[str]:
    """The names of the library's machines."""
    return _xccl.library_names()


def _bandwidth(bandwidth: Any) -> int:
    if isinstance(bandwidth, str):
        return parsed("bandwidth", _xccl.parse_bandwidth, bandwidth)
    if isinstance(bandwidth, (float, np.floating)) and 0 < bandwidth < 2**63:
        return round(bandwidth)
    return whole_of("bandwidth", bandwidth, "bytes per second, or a text such as 50GB/s", 1)


def _latency(name: str, latency: Any) -> int:
    if isinstance(latency, str):
        return parsed(name, _xccl.parse_latency, latency)
    return whole_of(name, latency, "whole picoseconds, or a text such as 500ns")
