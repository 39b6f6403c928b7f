#!/usr/bin/env python3
"""Checks and times a plan file without any of XCCL's code: docs/ir.md in plain Python.

    examples/check_plan.py allreduce.plan.json
    examples/check_plan.py allreduce.plan.json --size 1000000 --model blocking

Prints `ok` or the violations of rules S1 to S7 and, by check_program.py, the first of the program; then the time of the
schedule in picoseconds. Exit status 1 when the plan is wrong. It is made for small plans: one event at a time. Of many
segments it runs as many as docs/ir.md says, and draws the same straight line; --every-segment runs them all.
"""
import argparse
import heapq
import itertools
import json
import math
import sys
import xml.etree.ElementTree
from collections import defaultdict
from fractions import Fraction

sys.dont_write_bytecode = True
import check_program  # beside this file

# ---- The machine: section 10 ----

BANDWIDTH = {"B/s": 1, "KB/s": 10**3, "MB/s": 10**6, "GB/s": 10**9, "TB/s": 10**12,
             "KiB/s": 2**10, "MiB/s": 2**20, "GiB/s": 2**30,
             "Mbit/s": 125 * 10**3, "Gbit/s": 125 * 10**6, "Tbit/s": 125 * 10**9}
TIME = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}


def quantity(text, units):
    digits = len(text) - len(text.lstrip("0123456789."))
    return int(Fraction(text[:digits]) * units[text[digits:]])


class Machine:
    """nodes: (kind, id, host, multicast, reduce); links: (tail, head, bandwidth, latency, overhead)."""

    def __init__(self, text):
        self.nodes, self.links, self.rank_of, self.named = [], [], {}, defaultdict(list)
        root = xml.etree.ElementTree.fromstring(text)
        for element in root:
            if element.tag == "host":
                for inner in element:
                    self.add_node(inner, element.get("name"))
            elif element.tag == "link":
                self.add_link(element)
            else:
                self.add_node(element, None)
        self.ranks = len(self.rank_of)

    def add_node(self, element, host):
        if element.tag == "gpu":
            self.rank_of[len(self.nodes)] = len(self.rank_of)
        self.named[element.get("id")].append(len(self.nodes))
        flag = lambda name: element.get(name) == "true"
        self.nodes.append((element.tag, element.get("id"), host, flag("multicast"), flag("reduce")))

    def find(self, reference):
        host, kind, name = None, None, reference
        plain = self.named.get(reference, [])
        if len(plain) == 1:
            return plain[0]
        if ":" in name:
            kind, name = name.split(":", 1)
            if "/" in kind:
                host, kind = kind.rsplit("/", 1)
        found = [n for n in self.named.get(name, [])
                 if kind in (None, self.nodes[n][0]) and host in (None, self.nodes[n][2])]
        if len(found) > 1:  # a reference without a host means the node that has none
            found = [n for n in found if self.nodes[n][2] is None]
        if len(found) != 1:
            raise ValueError(f"topology: link end {reference}: {len(found)} nodes have that name")
        return found[0]

    def add_link(self, element):
        tail, head = self.find(element.get("from")), self.find(element.get("to"))
        values = (quantity(element.get("bandwidth"), BANDWIDTH), quantity(element.get("latency", "0ns"), TIME),
                  quantity(element.get("overhead", "0ns"), TIME))
        self.links.append((tail, head) + values)
        if element.get("duplex") != "false":
            self.links.append((head, tail) + values)


# ---- The collective: sections 1 and 2 ----

class Table:
    """A list whose entries are made when they are read: the tables of 40,000 ranks are too large to keep."""

    def __init__(self, length, entry):
        self.length, self.entry = length, entry

    def __len__(self):
        return self.length

    def __getitem__(self, part):
        return self.entry(part)


class Collective:
    """before[part] and after[part]: {rank: set of contributions}."""

    def __init__(self, data):
        self.name, self.members, self.root = data["name"], data["ranks"], data["root"]
        self.custom = "pre" in data
        self.counts = data.get("part_sizes") if self.custom else data.get("counts")
        n, everyone = len(self.members), set(self.members)
        own, to_all = {m: {m} for m in self.members}, lambda s: {m: s for m in self.members}
        kind = "custom" if self.custom else self.name
        if self.custom:
            table = lambda rows: [{row["rank"]: set(row["contributions"]) for row in rows if row["part"] == p}
                                  for p in range(len(self.counts))]
            self.before, self.after = table(data["pre"]), table(data["post"])
        elif kind in ("allgather", "allgatherv"):
            self.before, self.after = [{m: {m}} for m in self.members], Table(n, lambda i: to_all({self.members[i]}))
        elif kind in ("reduce_scatter", "reduce_scatterv"):
            self.before, self.after = [own] * n, [{m: everyone} for m in self.members]
        elif kind == "broadcast":
            self.before, self.after = [{self.root: {self.root}}], [to_all({self.root})]
        elif kind == "reduce":
            self.before, self.after = [own], [{self.root: everyone}]
        elif kind in ("allreduce", "barrier"):
            self.before, self.after = [own], [to_all(everyone)]
        elif kind == "gather":
            self.before, self.after = [{m: {m}} for m in self.members], [{self.root: {m}} for m in self.members]
        elif kind == "scatter":
            self.before = [{self.root: {self.root}}] * n
            self.after = [{m: {self.root}} for m in self.members]
        elif kind in ("alltoall", "alltoallv"):
            pairs = [(a, b) for a in self.members for b in self.members]
            self.before, self.after = [{a: {a}} for a, _ in pairs], [{b: {a}} for a, b in pairs]
        elif kind == "sendrecv":
            self.before, self.after = [{a: {a}} for a, _ in data["pairs"]], [{b: {a}} for a, b in data["pairs"]]
        else:
            raise ValueError(f"collective.name: unknown collective {kind}")
        parts = data.get("parts", [1] * len(self.before))
        self.weights, self.part_of = data.get("weights", [1] * len(parts)), []
        self.weight_before, self.part_weight = [], []
        for part, chunks in enumerate(parts):
            total = 0
            for _ in range(chunks):
                self.weight_before.append(total)
                total += self.weights[len(self.part_of)]
                self.part_of.append(part)
            self.part_weight.append(total)
        self.chunks = len(self.part_of)
        if self.chunks != len(self.weights) or len(parts) != len(self.before):
            raise ValueError("collective: parts and weights do not agree with the collective")

    def always_empty(self, chunk):
        return self.weights[chunk] == 0 or (self.counts is not None and self.counts[self.part_of[chunk]] == 0)

    def part_elements(self, size):
        elements, n, parts = size // 4, len(self.members), len(self.before)
        if self.custom or self.name == "alltoallv":
            fullest = max([sum(self.counts[p] for p in range(parts) if m in side[p])
                           for m in self.members for side in (self.before, self.after)], default=0)
            return [elements * c // fullest if fullest else 0 for c in self.counts]
        if self.name in ("allgatherv", "reduce_scatterv"):
            prefix = [sum(self.counts[:i]) for i in range(parts + 1)]
            at = lambda i: elements * prefix[i] // prefix[-1] if prefix[-1] else 0
            return [at(i + 1) - at(i) for i in range(parts)]
        if self.name == "barrier":
            return [0] * parts
        if self.name in ("allreduce", "broadcast", "reduce", "sendrecv"):
            return [elements] * parts
        return [elements // n // 4 * 4] * parts

    def chunk_bytes(self, size):
        parts, sizes = self.part_elements(size), []
        for c in range(self.chunks):
            x, v, total = parts[self.part_of[c]], self.weight_before[c], self.part_weight[self.part_of[c]]
            at = lambda weight: x * weight // total if total else 0
            sizes.append(4 * (at(v + self.weights[c]) - at(v)))
        return sizes


# ---- The schedule and its rules: sections 3 and 4 ----

def path_error(machine, path, sources, destinations):
    """Grows the tree from its one end, link by link."""
    reduction = len(sources) > 1
    if not path or not all(0 <= link < len(machine.links) for link in path):
        return "no links, or links that are not there"
    links = [machine.links[link] for link in path]
    if reduction:
        links = [(head, tail) for tail, head, *_ in reversed(links)]
    inner, outer = (destinations, sources) if reduction else (sources, destinations)
    if len(inner) != 1 or machine.rank_of.get(links[0][0]) != inner[0]:
        return "does not start where the transfer does"
    children = {links[0][0]: 0}
    for tail, head, *_ in links:
        if tail not in children or head in children:
            return "neither a chain nor a tree"
        if tail in machine.rank_of and tail != links[0][0]:
            return "passes a GPU"
        children[tail] += 1
        if children[tail] > 1 and not machine.nodes[tail][4 if reduction else 3]:
            return "branches where nothing multicasts or reduces"
        children[head] = 0
    leaves = [machine.rank_of.get(node) for node, below in children.items() if below == 0]
    return None if sorted(leaves, key=str) == sorted(outer, key=str) else "ends elsewhere"


class Schedule:
    def __init__(self, data, machine):
        self.machine, self.chunks = machine, data["chunks"]
        if "paths" in data:
            data = self.with_lists(data)
        columns = [data[k] for k in ("first", "count", "src", "dst", "path", "op", "step")]
        if len({len(column) for column in columns}) > 1:
            raise ValueError("schedule: columns of different length")
        self.first, self.count, self.src, self.dst, self.path, self.op, self.step = columns
        self.symmetry = data.get("symmetry")
        self.size = len(self.first)
        as_list = lambda ends: ends if isinstance(ends, list) else [ends]
        self.src, self.dst = [as_list(e) for e in self.src], [as_list(e) for e in self.dst]

    def with_lists(self, data):
        """The columns of a file whose transfers number their paths in a table."""
        paths, links, rank_of = data["paths"], self.machine.links, self.machine.rank_of
        ends = [[list(dict.fromkeys(rank_of[links[l][side]] for l in path if links[l][side] in rank_of))
                 for path in paths] for side in (0, 1)]
        result = dict(data, path=[paths[p] for p in data["path"]])
        for key, of_path in zip(("src", "dst"), ends):
            result[key] = [of_path[p] if len(of_path[p]) > 1 and of_path[p][0] == end else end
                           for p, end in zip(data["path"], data[key])]
        return result

    def range_errors(self, collective):
        ranks, last = self.machine.ranks, 0
        if self.chunks != collective.chunks:
            yield f"[S1] schedule.chunks: {self.chunks}; the collective has {collective.chunks}"
        for t in range(self.size):
            ends = self.src[t] + self.dst[t]
            right = (0 <= self.first[t] < self.first[t] + self.count[t] <= self.chunks
                     and all(0 <= r < ranks for r in ends) and not set(self.src[t]) & set(self.dst[t])
                     and all(0 <= link < len(self.machine.links) for link in self.path[t]) and self.op[t] in "cr"
                     and self.step[t] >= last and (t > 0 or self.step[t] == 0))
            last = max(last, self.step[t])
            if not right:
                yield f"[S1] transfer {t}: a value is out of range"

    def violations(self, collective):
        found = list(self.range_errors(collective))
        if found:
            return found
        for t in range(self.size):
            if (error := path_error(self.machine, self.path[t], self.src[t], self.dst[t])) is not None:
                found.append(f"[S2] step {self.step[t]}: transfer {t}: {error}")
        of_chunk = defaultdict(list)
        for t in range(self.size):
            for c in range(self.first[t], self.first[t] + self.count[t]):
                of_chunk[c].append(t)
        represents = range(self.chunks)
        if self.symmetry is not None:
            translations = Translations(self.symmetry, self.machine, collective)
            found += [f"[S7] {error}" for error in translations.errors()]
            if found:
                return found
            represents = list(translations.representatives())
            found += [f"[S7] chunk {c} is moved and represents nothing" for c in set(of_chunk) - set(represents)]
        for c in represents:
            found += self.chunk_violations(c, of_chunk[c], collective)
        return found

    def chunk_violations(self, c, transfers, collective):
        part = collective.part_of[c]
        holds, found = {r: set(s) for r, s in collective.before[part].items()}, []
        for step in sorted({self.step[t] for t in transfers}):
            now = [t for t in transfers if self.step[t] == step]
            carried, written = {}, defaultdict(str)
            for t in now:
                sets = [holds.get(r) for r in self.src[t]]
                if None in sets:
                    found.append(f"[S3] step {step}: rank {self.src[t][sets.index(None)]} sends chunk {c}, "
                                 "which it does not hold")
                elif len(set().union(*sets)) != sum(map(len, sets)):
                    found.append(f"[S4] step {step}: chunk {c} is reduced twice in a switch")
                else:
                    carried[t] = set().union(*sets)
            before = set(holds)
            for t, r in ((t, r) for t in now if t in carried for r in self.dst[t]):
                written[r] += self.op[t]
                if len(written[r]) > 1 and "c" in written[r]:
                    found.append(f"[S5] step {step}: rank {r} is sent chunk {c} twice, not both to reduce")
                elif self.op[t] == "c":
                    holds[r] = carried[t]
                elif r not in before:
                    found.append(f"[S3] step {step}: rank {r} reduces into chunk {c}, which it does not hold")
                elif holds[r] & carried[t]:
                    found.append(f"[S4] step {step}: rank {r} reduces chunk {c} twice")
                else:
                    holds[r] = holds[r] | carried[t]
        for r, wanted in collective.after[part].items():
            if holds.get(r) != wanted and not collective.always_empty(c):
                found.append(f"[S6] end: rank {r} does not have what it needs of chunk {c}")
        return found


# ---- Compressed schedules: section 3 ----

class Translations:
    """The group that the generators make. An element is a tuple of powers, one a generator."""

    def __init__(self, data, machine, collective):
        self.orders, self.images, self.machine, self.collective = data["order"], data["image"], machine, collective
        n, kind = len(collective.members), "custom" if collective.custom else collective.name
        self.pairs, self.known = kind in ("alltoall", "alltoallv"), True
        if kind == "allreduce" and collective.chunks % n == 0:
            self.begin = [collective.chunks // n * m for m in range(n + 1)]
        elif self.pairs or kind in ("allgather", "allgatherv", "reduce_scatter", "reduce_scatterv"):
            first = {part: chunk for chunk, part in reversed(list(enumerate(collective.part_of)))}
            self.begin = [first[p] for p in range(len(collective.before))] + [collective.chunks]
        else:
            self.known = False

    def errors(self):
        """Checks everything before anything is used: later methods rely on it."""
        nodes, links = self.machine.nodes, self.machine.links
        if not self.known:
            return ["the collective has no part for each rank"]
        if not self.orders or len(self.orders) != len(self.images):
            return ["symmetry: as many orders as images, and one or more"]
        found = []
        for g, (order, image) in enumerate(zip(self.orders, self.images)):
            if sorted(image) != list(range(len(nodes))):
                found.append(f"generator {g}: not a permutation of the nodes")
            elif any(nodes[a][:1] + nodes[a][3:] != nodes[b][:1] + nodes[b][3:] for a, b in enumerate(image)):
                found.append(f"generator {g}: takes a node to one that differs")
            elif sorted((image[l[0]], image[l[1]]) + l[2:] for l in links) != sorted(links):
                found.append(f"generator {g}: does not keep the links")
            elif order < 2 or order % math.lcm(*{len(c) for c in self.cycles(image)}) != 0:
                found.append(f"generator {g}: does not have order {order}")
        if found:
            return found
        for a, b in itertools.combinations(self.images, 2):
            if any(a[b[n]] != b[a[n]] for n in range(len(nodes))):
                return ["symmetry: generators do not commute"]
        return self.orbit_errors() or self.part_errors()

    @staticmethod
    def cycles(image):
        seen, found = set(), []
        for start in range(len(image)):
            cycle, at = [], start
            while at not in seen:
                seen.add(at)
                cycle.append(at)
                at = image[at]
            if cycle:
                found.append(cycle)
        return found

    def orbit_errors(self):
        """Numbers ranks by (lowest rank of the orbit, element that takes it there)."""
        rank_of = self.machine.rank_of
        node_of = {rank: node for node, rank in rank_of.items()}
        self.rank_images = [[rank_of[image[node_of[r]]] for r in range(len(node_of))] for image in self.images]
        self.place = {}
        for lowest in range(len(node_of)):
            if lowest in self.place:
                continue
            orbit = {lowest: (0,) * len(self.orders)}
            for g, image in enumerate(self.rank_images):  # the orbit so far, and its images, and theirs
                for rank, element in list(orbit.items()):
                    for power in range(1, self.orders[g]):
                        rank = image[rank]
                        if rank in orbit:
                            return [f"symmetry: rank {rank} is taken to one place by two elements"]
                        orbit[rank] = element[:g] + (power,) + element[g + 1:]
            self.place.update({rank: (lowest, element) for rank, element in orbit.items()})
        return []

    def part_errors(self):
        members, c = self.collective.members, self.collective
        self.member = {rank: i for i, rank in enumerate(members)}
        for image in self.rank_images:
            if any(image[m] not in self.member for m in members):
                return ["symmetry: takes a member out of the collective"]
            for b in range(len(self.begin) - 1):
                to = self.block_image(b, lambda r: image[r])
                look = lambda x: (c.weights[self.begin[x]:self.begin[x + 1]], c.counts and c.counts[x])
                if look(b) != look(to):
                    return [f"symmetry: part {b} differs from its image {to}"]
        return []

    def block_image(self, block, rank_image):
        n, move = len(self.member), lambda m: self.member[rank_image(self.collective.members[m])]
        return move(block // n) * n + move(block % n) if self.pairs else move(block)

    def representatives(self):
        n = len(self.collective.members)
        for b in range(len(self.begin) - 1):
            rank = self.collective.members[b // n if self.pairs else b]
            if self.place[rank][0] == rank:
                yield from range(self.begin[b], self.begin[b + 1])

    def prepare_links(self):
        """The cycles of every generator on the links, equal parallel links in order of id."""
        links, alike = self.machine.links, defaultdict(list)
        for l, link in enumerate(links):
            alike[link].append(l)
        self.link_cycles = []
        for image in self.images:
            moved = [alike[(image[link[0]], image[link[1]]) + link[2:]][alike[link].index(l)]
                     for l, link in enumerate(links)]
            self.link_cycles.append({l: (cycle, i) for cycle in self.cycles(moved) for i, l in enumerate(cycle)})

    def link_image(self, element, link):
        for power, cycles in zip(element, self.link_cycles):
            cycle, at = cycles[link]
            link = cycle[(at + power) % len(cycle)]
        return link

    def fold(self, schedule, sizes):
        """The data for Simulation to run the columns alone, or None where only the plain form is exact."""
        for image in self.rank_images:
            for b in range(len(self.begin) - 1):
                to = self.block_image(b, lambda r: image[r])
                if sizes[self.begin[b]:self.begin[b + 1]] != sizes[self.begin[to]:self.begin[to + 1]]:
                    return None
        elements = math.prod(self.orders)
        orbit, size = {}, {}
        for l in range(len(self.machine.links)):
            if l in orbit:
                continue
            found = [l]
            orbit[l] = l
            for at in found:
                for cycles in self.link_cycles:
                    to = cycles[at][0][(cycles[at][1] + 1) % len(cycles[at][0])]
                    if to not in orbit:
                        orbit[to] = l
                        found.append(to)
            size[l] = len(found)
        if any(size[orbit[l]] != elements for path in schedule.path for l in path):
            return None
        if any(len({orbit[l] for l in path}) < len(path) for path in schedule.path):
            return None
        keys = []
        for path in schedule.path:
            element = self.place[self.machine.rank_of[self.machine.links[path[0]][0]]][1]
            back = tuple((order - power) % order for order, power in zip(self.orders, element))
            keys.append(tuple(self.link_image(back, l) for l in path))
        return elements, orbit, keys

    def expand(self, schedule):
        """Writes the translates out: for each transfer all its images."""
        columns = {name: [] for name in ("first", "count", "src", "dst", "path", "op", "step")}
        block_of = [b for b in range(len(self.begin) - 1) for _ in range(self.begin[b], self.begin[b + 1])]
        orders = [range(order) for order in reversed(self.orders)]
        for t in range(schedule.size):
            first, end = schedule.first[t], schedule.first[t] + schedule.count[t]
            while first < end:
                block = block_of[first]
                stop = min(end, self.begin[block + 1])
                for element in itertools.product(*orders):
                    self.add_image(schedule, t, element[::-1], (block, first, stop - first), columns)
                first = stop
        columns["chunks"] = schedule.chunks
        return Schedule(columns, self.machine)

    def add_image(self, schedule, t, element, run, columns):
        def rank_image(rank):
            for power, image in zip(element, self.rank_images):
                for _ in range(power):
                    rank = image[rank]
            return rank
        block, first, count = run
        row = {"first": self.begin[self.block_image(block, rank_image)] + first - self.begin[block], "count": count,
               "src": [rank_image(r) for r in schedule.src[t]], "dst": [rank_image(r) for r in schedule.dst[t]],
               "path": [self.link_image(element, l) for l in schedule.path[t]],
               "op": schedule.op[t], "step": schedule.step[t]}
        for name, value in row.items():
            columns[name].append(value)


# ---- Time: section 5 ----

def ceil_div(a, b):
    return -(-a // b)


def units_of(schedule, sizes, blocking, keys):
    """(step, message, place, a transfer, all moves, bytes) of each unit; a move is (transfer, chunk)."""
    messages, chunks_of, example = {}, defaultdict(list), {}
    for t in range(schedule.size):
        key = (schedule.step[t], keys[t])
        message = messages.setdefault(key, len(messages))
        example.setdefault(message, t)
        for c in range(schedule.first[t], schedule.first[t] + schedule.count[t]):
            chunks_of[message].append((t, c))
    units = []
    for message, moves in chunks_of.items():
        step = schedule.step[example[message]]
        if blocking:
            units.append((step, message, 0, example[message], moves, sum(sizes[c] for _, c in moves)))
        else:
            units += [(step, message, place, t, [(t, c)], sizes[c]) for place, (t, c) in enumerate(moves)]
    return units


def segment_count(schedule, sizes, units, blocking, keys, copies):
    if blocking:
        return 1
    largest = max(sizes, default=0)
    if largest <= 65536 or not units:  # without a transfer nothing is cut
        return 1
    carried, moves = defaultdict(int), 0
    for _, _, _, t, _, size in units:
        carried[keys[t]] += size
        moves += copies
    steps, widest = max(schedule.step) + 1, max([largest] + list(carried.values()))
    wanted = min(max(ceil_div(64 * (steps * largest - widest), widest), 65536 // moves),
                 max(2**21, 2**13 * schedule.members) // moves)
    n = min(max(wanted, 1), ceil_div(largest, 65536))
    return ceil_div(largest, max(65536, ceil_div(largest, n)))


class Simulation:
    """One run of the first `run` of all segments; without it, nothing runs, and `n` and `jobs` can be asked for."""

    def __init__(self, schedule, sizes, blocking, fold=None, run=0):
        self.s, self.blocking, self.links = schedule, blocking, schedule.machine.links
        # In a compressed schedule a link stands for its orbit, and paths that are translates are one path.
        copies, self.server, keys = fold or (1, range(len(self.links)), [tuple(path) for path in schedule.path])
        self.units = units_of(schedule, sizes, blocking, keys)
        self.n = segment_count(schedule, sizes, self.units, blocking, keys, copies)
        self.jobs = copies * sum(len(schedule.path[unit[3]]) for unit in self.units)
        self.segments = run
        self.waiting = {}                   # job (unit, hop, segment) -> what it still waits for
        self.readers = defaultdict(list)    # (rank, chunk, segment) -> [(writes needed, job)]
        self.writes = defaultdict(list)     # (rank, chunk) -> units that write it, by step
        self.landed = defaultdict(set)      # (rank, chunk, segment) -> units whose write is there
        self.ready = [[] for _ in self.links]
        self.idle, self.taken, self.touched = [True] * len(self.links), set(), set()
        self.start, self.end, self.events, self.last = {}, {}, [], 0
        self.prepare()

    def prepare(self):
        rank_of = self.s.machine.rank_of
        for u, unit in enumerate(self.units):
            for hop in range(len(self.s.path[unit[3]])):
                for cell in self.cells(u, hop, 1):
                    self.writes[cell].append(u)
        for writers in self.writes.values():
            writers.sort(key=lambda u: self.units[u][0])
        self.inputs, self.outputs = {}, defaultdict(list)  # (unit, hop) -> hops of its path before and behind it
        for u, (step, _, _, t, _, _) in enumerate(self.units):
            path = self.s.path[t]
            for hop, link in enumerate(path):
                tail = self.links[link][0]
                rank = rank_of.get(tail)
                self.inputs[u, hop] = [] if rank is not None else [
                    other for other, before in enumerate(path) if self.links[before][1] == tail]
                for other in self.inputs[u, hop]:
                    self.outputs[u, other].append(hop)
                need = [(r, c, sum(self.units[w][0] < step for w in self.writes[r, c]))
                        for r, c in self.cells(u, hop, 0)]
                need = [(r, c, k) for r, c, k in need if k > 0]
                for segment in range(self.segments):
                    job = (u, hop, segment)
                    self.waiting[job] = len(need) + len(self.inputs[u, hop])
                    for r, c, k in need:
                        self.readers[r, c, segment].append((k, job))
                    if self.waiting[job] == 0:
                        self.make_ready(job)

    def cells(self, unit, hop, end):
        """The (rank, chunk) that a hop of a unit reads (end 0) or writes (end 1)."""
        for t, c in self.units[unit][4]:
            if (rank := self.s.machine.rank_of.get(self.links[self.s.path[t][hop]][end])) is not None:
                yield rank, c

    def link_of(self, job):
        return self.s.path[self.units[job[0]][3]][job[1]]

    def make_ready(self, job):
        step, message, place = self.units[job[0]][:3]
        server = self.server[self.link_of(job)]
        heapq.heappush(self.ready[server], (step, message, place, job[2], job))
        self.touched.add(server)

    def one_less(self, job):
        self.waiting[job] -= 1
        if self.waiting[job] == 0:
            self.make_ready(job)

    def land(self, unit, hop, segment):
        """Writes a unit to a GPU: jobs that needed just this many of the first writes may go on."""
        for rank, c in self.cells(unit, hop, 1):
            cell = (rank, c, segment)
            prefix = lambda: next((i for i, w in enumerate(self.writes[rank, c]) if w not in self.landed[cell]),
                                  len(self.writes[rank, c]))
            before = prefix()
            self.landed[cell].add(unit)
            after = prefix()
            for need, job in self.readers[cell]:
                if before < need <= after:
                    self.one_less(job)

    def begin(self, job, now):
        unit, hop, segment = job
        link = self.link_of(job)
        _, head, bandwidth, alpha, overhead = self.links[link]
        _, message, _, _, _, size = self.units[unit]
        server = self.server[link]
        part = ceil_div(size * 10**12, self.n * bandwidth)
        if self.blocking:
            end = now + overhead + alpha + part
            arrival = head_there = end
        else:
            first = (server, message) not in self.taken
            self.taken.add((server, message))
            end = now + (overhead if first else 0) + part
            for other in self.inputs[unit, hop]:
                before = (unit, other, segment)
                end = max(end, self.end[before] + self.links[self.link_of(before)][3])
            arrival, head_there = end + alpha, now + alpha
        self.end[job] = end
        self.idle[server] = False
        heapq.heappush(self.events, (end, 0, ("idle", server)))
        if head in self.s.machine.rank_of:
            heapq.heappush(self.events, (arrival, 1, ("land", unit, hop, segment)))
        for behind in self.outputs[unit, hop]:
            heapq.heappush(self.events, (head_there, 2, ("head", (unit, behind, segment))))

    def choose(self, now):
        links, self.touched = sorted(self.touched), set()
        for link in links:
            if self.idle[link] and self.ready[link]:
                self.begin(heapq.heappop(self.ready[link])[-1], now)

    def run(self):
        self.choose(0)
        while self.events:
            now = self.events[0][0]
            while self.events and self.events[0][0] == now:
                what, *arguments = heapq.heappop(self.events)[2]
                if what == "idle":
                    self.idle[arguments[0]] = True
                    self.touched.add(arguments[0])
                elif what == "land":
                    self.last = max(self.last, now)
                    self.land(*arguments)
                else:
                    self.one_less(arguments[0])
            self.choose(now)
        return self.last

    def least(self):
        """No link is done before it has carried all of its bytes."""
        size, fixed, messages = defaultdict(int), defaultdict(int), set()
        for _, message, _, t, _, of_unit in self.units:
            for hop, link in enumerate(self.s.path[t]):
                server = self.server[link]
                _, _, _, alpha, overhead = self.links[server]
                size[server] += of_unit
                if self.blocking:
                    fixed[server] += self.n * (overhead + alpha)
                elif (message, hop) not in messages:
                    fixed[server] += overhead
                messages.add((message, hop))
        return max((ceil_div(size[link] * 10**12, self.links[link][2]) + fixed[link] for link in size), default=0)


def time_of(schedule, sizes, blocking, fold, every_segment):
    """The time of all segments: docs/ir.md, Extrapolation."""
    whole = Simulation(schedule, sizes, blocking, fold)
    n, jobs, most, least = whole.n, max(whole.jobs, 1), 4_000_000, whole.least()

    def run(segments):
        return Simulation(schedule, sizes, blocking, fold, segments).run()

    def line():
        m = max(8, 1024 // jobs)
        while m > 1 and 4 * m * jobs > most:
            m //= 2
        if every_segment or 8 * m >= n or n * jobs <= most:
            return run(n)
        before, last, longest, agreements = run(m), run(2 * m), 2 * m, 0
        while 2 * longest < n:
            time = run(2 * longest)
            rise, expected = time - last, 2 * (last - before)
            agreements = agreements + 1 if abs(rise - expected) <= 1e-5 * rise else 0
            before, last, longest = last, time, 2 * longest
            if agreements >= 2 or 2 * longest * jobs > most:
                # The rise is at least that of the fullest link's load.
                return last + max((last - before) * (n - longest) // (longest // 2), least * (n - longest) // n)
        return run(n)

    return max(line(), least)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("plan")
    parser.add_argument("--size", type=int, help="bytes; by default the size that the plan was made for")
    parser.add_argument("--model", choices=("pipelined", "blocking"), default="pipelined")
    parser.add_argument("--every-segment", action="store_true", help="extrapolate nothing")
    options = parser.parse_args()
    with open(options.plan, encoding="utf-8") as file:
        plan = json.load(file)
    if plan["format"] != 1:
        sys.exit(f"{options.plan}: format {plan['format']}; this program reads 1")
    if "damage" in plan["schedule"]:
        sys.exit(f"{options.plan}: a compressed plan of a damaged machine; this program reads plain ones of these")
    collective = Collective(plan["collective"])
    machine = Machine(plan["topology"])
    schedule, translations = Schedule(plan["schedule"], machine), None
    violations = schedule.violations(collective)
    if not violations:
        plain, cut = schedule, None
        if schedule.symmetry is not None:
            translations = Translations(schedule.symmetry, machine, collective)
            translations.errors()
            translations.prepare_links()
            if "program" in plan:
                plain = translations.expand(schedule)
        if "program" in plan:
            own = {key: plan["program"][key] for key in ("parts", "weights") if key in plan["program"]}
            cut = Collective({**plan["collective"], **own})
        error = check_program.violation(plan, plain, collective, cut, path_error)
        violations = [error] if error is not None else []
    for violation in violations:
        print(violation)
    if violations:
        return 1
    print("ok")
    size = options.size if options.size is not None else plan.get("made_by", {}).get("size_bytes", 64 << 20)
    sizes, fold = collective.chunk_bytes(size), None
    if translations is not None:
        fold = translations.fold(schedule, sizes)
        if fold is None:
            schedule = translations.expand(schedule)
    schedule.members = len(collective.members)
    print("time_ps", time_of(schedule, sizes, options.model == "blocking", fold, options.every_segment))
    return 0


if __name__ == "__main__":
    sys.exit(main())
