"""Random machines: regular at heart, worn and odd in places.

A Machine is data, so that a hunt can take links and nodes out of it. draw_machine draws one of KINDS and wears it.
"""

import typing
from xml.sax.saxutils import quoteattr

GB = 10**9
NS = 1000


class Node(typing.NamedTuple):
    kind: str  # gpu, switch, nic, cpu
    id: str  # differs from all others
    host: str | None = None
    multicast: bool = False
    reduce: bool = False


class Link(typing.NamedTuple):
    tail: str
    head: str
    bandwidth: int  # bytes per second
    latency_ps: int = 500 * NS
    overhead_ps: int = 0
    duplex: bool = True


class Machine(typing.NamedTuple):
    nodes: tuple = ()
    links: tuple = ()
    arch: str | None = None

    def gpus(self):
        return [node for node in self.nodes if node.kind == "gpu"]

    def xml(self):
        """Nodes in their order, so that ranks keep it; a host that is left goes on later."""
        arch = f" arch={quoteattr(self.arch)}" if self.arch else ""
        lines, seen, host = [f'<topology name="machine"{arch}>'], set(), None
        for node in self.nodes:
            if node.host != host:
                if host is not None:
                    lines.append("  </host>")
                if node.host is not None:
                    lines.append(f'  <host name="{node.host}"' + (' continued="true">' if node.host in seen else ">"))
                host = node.host
                seen.add(host)
            flags = "".join(f' {name}="true"' for name in ("multicast", "reduce") if getattr(node, name))
            lines.append(("    " if host else "  ") + f'<{node.kind} id="{node.id}"{flags}/>')
        if host is not None:
            lines.append("  </host>")
        lines += ["  " + link_xml(link) for link in self.links]
        return "\n".join(lines + ["</topology>\n"])

    def without_nodes(self, ids):
        """Without these nodes, and without the links at them."""
        return self._replace(
            nodes=tuple(node for node in self.nodes if node.id not in ids),
            links=tuple(link for link in self.links if link.tail not in ids and link.head not in ids),
        )


def link_xml(link):
    text = f'<link from="{link.tail}" to="{link.head}" bandwidth="{bandwidth_text(link.bandwidth)}"'
    if link.latency_ps:
        text += f' latency="{time_text(link.latency_ps)}"'
    if link.overhead_ps:
        text += f' overhead="{time_text(link.overhead_ps)}"'
    return text + ("/>" if link.duplex else ' duplex="false"/>')


def bandwidth_text(bytes_per_s):
    return f"{bytes_per_s // GB}GB/s" if bytes_per_s % GB == 0 else f"{bytes_per_s}B/s"


def time_text(ps):
    return f"{ps // NS}ns" if ps % NS == 0 else f"{ps}ps"


class Builder:
    def __init__(self, random):
        self.random, self.nodes, self.links = random, [], []

    def add(self, kind, host=None, multicast=False, reduce=False):
        self.nodes.append(Node(kind, f"{kind[0]}{len(self.nodes)}", host, multicast, reduce))
        return self.nodes[-1].id

    def gpus(self, count, host=None):
        return [self.add("gpu", host) for _ in range(count)]

    def cable(self, a, b, gb_per_s, latency_ns=500, duplex=True):
        self.links.append(Link(a, b, int(gb_per_s * GB), latency_ns * NS, 0, duplex))

    def nvswitch(self, gpus, host=None):
        flag = lambda: self.random.random() < 0.4
        switch, rate = self.add("switch", host, flag(), flag()), self.random.choice((300, 450))
        for gpu in gpus:
            self.cable(gpu, switch, rate, 350)

    def low(self, low, high):
        """A number of [low, high], mostly a small one."""
        return min(self.random.randint(low, max(low, high)), self.random.randint(low, max(low, high)))


# ---- Kinds: each takes a Builder and the most ranks ----


def grid(b, most, wraps):
    rows = b.low(1, min(4, most))
    columns = b.low(1, max(1, most // rows))
    gpus = b.gpus(rows * columns)
    at = lambda r, c: gpus[r % rows * columns + c % columns]
    for r in range(rows):
        for c in range(columns):
            if c + 1 < columns or (wraps and columns > 2):
                b.cable(at(r, c), at(r, c + 1), 50)
            if r + 1 < rows or (wraps and rows > 2):
                b.cable(at(r, c), at(r + 1, c), b.random.choice((50, 50, 25)))


def ring(b, most):
    gpus = b.gpus(b.low(2, most))
    for a, c in zip(gpus, gpus[1:] + gpus[:1]):
        b.cable(a, c, 25)


def full_mesh(b, most):
    gpus = b.gpus(b.low(2, min(most, 8)))
    for i, a in enumerate(gpus):
        for c in gpus[:i]:
            b.cable(a, c, 25, 700)


def digraph(b, most):
    """A random tree of cables, so that all reach each other, and random one-way links."""
    gpus = b.gpus(b.low(2, most))
    between = gpus + [b.add("switch", None, b.random.random() < 0.3, b.random.random() < 0.3) for _ in range(b.random.randrange(3))]
    for i, a in enumerate(between[1:], 1):
        b.cable(a, b.random.choice(between[:i]), b.random.choice((5, 10, 25, 50)), b.random.choice((0, 200, 1000)))
    for _ in range(b.random.randrange(2 * len(between))):
        a, c = b.random.choice(between), b.random.choice(between)
        if a != c:
            b.cable(a, c, b.random.choice((5, 10, 25, 50)), b.random.choice((0, 200, 1000)), duplex=b.random.random() < 0.3)


def one_switch(b, most):
    b.nvswitch(b.gpus(b.low(1, most), b.random.choice((None, "h0"))), None)


def hosts(b, most):
    """Hosts with NVSwitches and NICs: rails, or one fabric of unlike NICs."""
    gpus = b.random.randint(1, max(1, min(4, most // 2)))
    number, nics, unlike = b.low(2, max(2, most // gpus)), b.random.randint(1, gpus), b.random.random() < 0.5
    rails = [b.add("switch") for _ in range(1 if unlike else nics)]
    for h in range(number):
        own = b.gpus(gpus, f"h{h}")
        b.nvswitch(own, f"h{h}")
        ports = [b.add("nic", f"h{h}") for _ in range(nics)]
        for g, gpu in enumerate(own):
            b.cable(gpu, ports[g % nics], 25, 600)
        for n, port in enumerate(ports):
            b.cable(port, rails[n % len(rails)], b.random.choice((12.5, 25, 50)) if unlike else 25, 1300)


def ring_of_hosts(b, most):
    gpus = b.random.randint(1, max(1, min(4, most // 3)))
    ends = []
    for h in range(b.low(2, max(2, most // gpus))):
        own = b.gpus(gpus, f"h{h}")
        b.nvswitch(own, f"h{h}")
        ends.append((own[0], own[-1]))
    for (_, last), (first, _) in zip(ends, ends[1:] + ends[:1]):
        b.cable(last, first, b.random.choice((12.5, 25)), 1000)


def pcie(b, most):
    """Two sockets of one or two PCIe switches with GPUs; a NIC at some switches, without anything behind it on one host."""
    number = b.random.randint(1, 2)
    each, nics = b.random.randint(1, max(1, min(3, most // number // 4))), []
    for h in range(number):
        host = f"h{h}"
        cpus = [b.add("cpu", host) for _ in range(2)]
        b.cable(*cpus, b.random.choice((10, 20)), 300)
        for cpu in cpus:
            for _ in range(b.random.randint(1, 2)):
                bridge = b.add("switch", host)
                b.cable(bridge, cpu, 32, 300)
                for gpu in b.gpus(each, host):
                    b.cable(gpu, bridge, 32, 300)
                if b.random.random() < 0.5:
                    nics.append(b.add("nic", host))
                    b.cable(nics[-1], bridge, 12.5, 600)
        if not nics or not any(link.tail == nics[-1] and link.head.startswith("s") for link in b.links):
            nics.append(b.add("nic", host))
            b.cable(nics[-1], cpus[0], 12.5, 600)
    if number > 1 or b.random.random() < 0.3:
        fabric = b.add("switch")
        for nic in nics:
            b.cable(nic, fabric, 12.5, 1300)


def leaf_spine(b, most):
    leaves, spines = b.random.randint(1, 3), [b.add("switch") for _ in range(b.random.randint(1, 2))]
    each = b.low(1, max(1, most // leaves))
    for leaf in [b.add("switch") for _ in range(leaves)]:
        for _ in range(each):
            b.cable(b.add("gpu", f"n{len(b.nodes)}"), leaf, 50)
        for spine in spines:
            b.cable(leaf, spine, b.random.choice((12.5, 12.5, 6.25)))


def dragonfly(b, most):
    groups, routers = b.random.randint(2, 3), b.random.randint(1, 2)
    each, made = b.random.randint(1, max(1, most // groups // routers)), []
    for _ in range(groups):
        made.append([b.add("switch") for _ in range(routers)])
        for r, router in enumerate(made[-1]):
            for gpu in b.gpus(each):
                b.cable(gpu, router, 25)
            for other in made[-1][:r]:
                b.cable(router, other, 25)
    for i, group in enumerate(made):
        for other in made[:i]:
            b.cable(b.random.choice(group), b.random.choice(other), b.random.choice((12.5, 25)), 1500)


def accelerators(b, most):
    """Pairs of dies with 200 GB/s, a ring with 100 and chords with 50 GB/s."""
    count = 8 if most >= 8 else 4
    gpus = b.gpus(count)
    for g in range(count):
        b.cable(gpus[g], gpus[(g + 1) % count], (200, 100)[g % 2], 600)
        if g < count // 2:
            b.cable(gpus[g], gpus[g + count // 2], 50, 600)


def star(b, most):
    """A tree of GPUs, with nothing between them."""
    gpus = b.gpus(b.low(1, most))
    for i, gpu in enumerate(gpus[1:], 1):
        b.cable(gpus[b.random.randrange(i)], gpu, 25)


KINDS = {
    "mesh": lambda b, most: grid(b, most, False),
    "torus": lambda b, most: grid(b, most, True),
    "ring": ring,
    "full-mesh": full_mesh,
    "digraph": digraph,
    "switch": one_switch,
    "hosts": hosts,
    "ring-of-hosts": ring_of_hosts,
    "pcie": pcie,
    "leaf-spine": leaf_spine,
    "dragonfly": dragonfly,
    "accelerators": accelerators,
    "star": star,
}


# ---- Wear: each function takes the links of a machine and returns worn ones ----


def each(share, change):
    """A wear that changes this share of the links."""
    return lambda random, links: [change(random, link) if random.random() < share else link for link in links]


ODD_BANDWIDTHS = (1, 3, 1000, 10**6 + 3, 125 * 10**6, 7 * 10**9 + 1, 10**12, 10**15)
ODD_TIMES_PS = (0, 1, 999, 10**3, 10**6, 10**8 + 7, 10**12)

WEAR = {
    "slower": each(0.2, lambda random, link: link._replace(bandwidth=max(1, link.bandwidth // random.choice((2, 3, 10))))),
    "fewer": lambda random, links: [link for link in links if random.random() > 0.08],
    "one way": each(0.15, lambda random, link: link._replace(duplex=False)),
    "parallel": lambda random, links: links + [link for link in links if random.random() < 0.2],
    "no latency": each(1, lambda random, link: link._replace(latency_ps=0)),
    "some without latency": each(0.4, lambda random, link: link._replace(latency_ps=0)),
    "overhead": each(0.7, lambda random, link: link._replace(overhead_ps=random.choice((50, 300, 2000)) * NS)),
    "odd numbers": each(
        0.2, lambda random, link: link._replace(bandwidth=random.choice(ODD_BANDWIDTHS), latency_ps=random.choice(ODD_TIMES_PS))
    ),
    "log-uniform": each(
        1,
        lambda random, link: link._replace(
            bandwidth=int(10 ** random.uniform(8, 12)), latency_ps=int(10 ** random.uniform(3, 7))
        ),
    ),
    "turned": lambda random, links: random.sample(links, len(links)),
}


def draw_machine(random, most):
    """A machine of any kind with about `most` ranks at most. Its ranks may be cut apart from each other."""
    builder = Builder(random)
    KINDS[random.choice(sorted(KINDS))](builder, most)
    links = builder.links
    while random.random() < 0.55:
        links = WEAR[random.choice(sorted(WEAR))](random, links)
    nodes = builder.nodes
    if random.random() < 0.1:
        nodes = random.sample(nodes, len(nodes))
    arch = random.choice(("sm80", "sm90", "sm100")) if random.random() < 0.15 else None
    return Machine(tuple(nodes), tuple(links), arch)


def from_checker(machine):
    """A Machine of what examples/check_plan.py read. Nodes get names of their own."""
    names = [f"{node[0][0]}{n}" for n, node in enumerate(machine.nodes)]
    nodes = tuple(Node(kind, names[n], host, *flags) for n, (kind, _, host, *flags) in enumerate(machine.nodes))
    links = []
    for tail, head, *numbers in machine.links:
        back = Link(names[head], names[tail], *numbers, False)
        if links and links[-1] == back:
            links[-1] = back._replace(duplex=True)
        else:
            links.append(Link(names[tail], names[head], *numbers, False))
    return Machine(nodes, tuple(links))
