"""Checks the program of a plan file by running it on symbols: docs/ir.md, sections 7 and 8, in plain Python.

check_plan.py imports this file. It checks the paths of a program (P1), that sends fit receives (P4), that the program
ends (P5), reads what was written and adds nothing twice (P7), fills the outputs (P8) and belongs to its schedule (P10),
and `bitwise_same` (C1). It leaves out races (P6), the flags of avg (P9) and programs in place.
"""
from collections import Counter, defaultdict, deque
from fractions import Fraction

SENDS, RECEIVES = {"s", "rcs", "rrs", "rrcs"}, {"r", "rcs", "rrs", "rrc", "rrcs"}
READS, WRITES = {"s", "rrs", "rrc", "rrcs", "cpy", "re"}, {"r", "rcs", "rrc", "rrcs", "cpy", "re"}


class Wrong(Exception):
    """A violation, as `[rule] where: text`."""


class Sums:
    """Expressions as numbers: equal up to commuting operands, equal numbers."""

    def __init__(self):
        self.number, self.switches = {}, 0

    def leaf(self, ranks):
        return self.number.setdefault(("leaf", frozenset(ranks)), len(self.number))

    def add(self, a, b):
        return self.number.setdefault((min(a, b), max(a, b)), len(self.number))

    def add_all(self, operands):
        """One addition of three or more, in this order but for the first two."""
        if len(operands) == 2:
            return self.add(*operands)
        return self.number.setdefault((*sorted(operands[:2]), *operands[2:]), len(self.number))

    def in_switch(self):
        self.switches += 1
        return self.number.setdefault(("switch", self.switches), len(self.number))


def branches(machine, path):
    """The chains of a tree, or of a chain, each as (source, destination, links)."""
    tail, head = (lambda l: machine.links[l][0]), (lambda l: machine.links[l][1])
    out, into = {tail(l): l for l in path}, {head(l): l for l in path}
    sources = [tail(l) for l in path if tail(l) in machine.rank_of]
    joins, found = len(set(sources)) > 1, []
    for end in sources if joins else [head(l) for l in path if head(l) in machine.rank_of]:
        at, chain = end, []
        while not chain or at not in machine.rank_of:
            chain.append((out if joins else into)[at])
            at = head(chain[-1]) if joins else tail(chain[-1])
        ends = (end, at) if joins else (at, end)
        found.append((*(machine.rank_of[n] for n in ends), tuple(chain if joins else reversed(chain))))
    return found


def schedule_carries(schedule, collective, sums):
    """The triples (chunk, chain, contributions) of a schedule that is right, and whether all bits are the same. Of a
    compressed schedule only the columns count: the translates of a chunk are as it is."""
    machine, triples, same = schedule.machine, Counter(), True
    of_chunk = defaultdict(list)
    for t in range(schedule.size):
        for c in range(schedule.first[t], schedule.first[t] + schedule.count[t]):
            of_chunk[c].append(t)
    chains = {tuple(path): branches(machine, path) for path in schedule.path}
    for c in of_chunk if schedule.symmetry is not None else range(collective.chunks):
        part = collective.part_of[c]
        held = {r: (frozenset(s), sums.leaf(s)) for r, s in collective.before[part].items()}
        for step in sorted({schedule.step[t] for t in of_chunk[c]}):
            now = [t for t in of_chunk[c] if schedule.step[t] == step]
            carried = {}
            for t in now:
                for source, _, chain in chains[tuple(schedule.path[t])]:
                    triples[c, chain, held[source][0]] += not collective.always_empty(c)
                several = len(schedule.src[t]) > 1
                carried[t] = (frozenset().union(*(held[r][0] for r in schedule.src[t])),
                              sums.in_switch() if several else held[schedule.src[t][0]][1])
            added = defaultdict(list)
            for t in now:
                for r in schedule.dst[t]:
                    if schedule.op[t] == "c":
                        held[r] = carried[t]
                    else:
                        added[r].append(carried[t])
            # The order of a sum follows from its operands: ascending by their lowest contributor.
            for r, terms in added.items():
                terms = sorted([held[r], *terms], key=lambda term: min(term[0]))
                held[r] = (frozenset().union(*(term[0] for term in terms)), sums.add_all([e for _, e in terms]))
        if not collective.always_empty(c):
            same &= len({held[r][1] for r, s in collective.after[part].items() if len(s) > 1}) < 2
    return +triples, same


class Program:
    def __init__(self, data, machine, collective, path_error):
        self.data, self.machine, self.collective, self.path_error = data, machine, collective, path_error
        self.sums, self.carried, self.path_of = Sums(), Counter(), {}
        self.blocks = [(r, b, block) for r, rank in enumerate(data["ranks"])
                       for b, block in enumerate(rank["threadblocks"])]

    def check_paths(self):
        for src, dst, channel, *path in self.data["connections"]:
            if (error := self.path_error(self.machine, path, [src], [dst])) is not None:
                raise Wrong(f"[P1] connection {src}->{dst} channel {channel}: {error}")
            self.path_of[src, dst, channel] = tuple(path)
        for group in self.data.get("groups", []):
            if group["kind"] == "fan-in":
                continue
            root, members, path = group["root"], group["members"], group["path"]
            casts = group["kind"] == "multicast"
            ends = ([root], members) if casts else (members, [root])
            error = self.path_error(self.machine, path, *ends)
            for source, destination, chain in branches(self.machine, path) if error is None else []:
                if self.path_of.get((source, destination, group["channel"])) != chain:
                    error = f"its connection {source}->{destination} takes other links"
            if error is not None:
                raise Wrong(f"[P1] {group['kind']} group of rank {root}: {error}")

    def chunks_of(self, side):
        """By rank: the chunks of its input or output, in order of slots."""
        first = {part: chunk for chunk, part in reversed(list(enumerate(self.collective.part_of)))}
        count = Counter(self.collective.part_of)
        slots = [[] for _ in range(self.machine.ranks)]
        for part in range(len(self.collective.before)):
            for r in side[part]:
                slots[r] += range(first[part], first[part] + count[part])
        return slots

    def connections(self, r, block, sends):
        if (group := block.get("send_group" if sends else "recv_group")) is not None:
            peers = self.data["groups"][group]["members"]
        else:
            peer = block.get("send" if sends else "recv")
            peers = [] if peer is None else [peer]
        return [(r, p, block["channel"]) if sends else (p, r, block["channel"]) for p in peers]

    def run(self):
        """Runs every threadblock as far as it comes, until nothing moves."""
        self.held = [{} for _ in self.data["ranks"]]
        for r, chunks in enumerate(self.chunks_of(self.collective.before)):
            for slot, c in enumerate(chunks):
                mine = self.collective.before[self.collective.part_of[c]][r]
                self.held[r]["i", slot] = (c, frozenset(mine), self.sums.leaf(mine))
        self.queue, self.in_flight = defaultdict(deque), Counter()
        self.done = {(r, b): 0 for r, b, _ in self.blocks}
        moved = True
        while moved:
            moved = False
            for r, b, block in self.blocks:
                ops = block["op"].split()
                while self.done[r, b] < len(ops) and self.step(r, block, self.done[r, b], ops[self.done[r, b]]):
                    self.done[r, b] += 1
                    moved = True
        for r, b, block in self.blocks:
            if self.done[r, b] < len(block["op"].split()):
                raise Wrong(f"[P5] rank {r} threadblock {b}: waits forever at instruction {self.done[r, b]}")
        if any(self.queue.values()):
            raise Wrong("[P4] program: more sends than receives")

    def step(self, r, block, i, op):
        """Does an instruction, or returns False if it must wait."""
        where, deps = f"rank {r} instruction {i}", block["deps"]
        for d in range(0, len(deps), 3):
            if deps[d] == i and self.done[r, deps[d + 1]] <= deps[d + 2]:
                return False
        come = self.connections(r, block, False) if op in RECEIVES else []
        go = self.connections(r, block, True) if op in SENDS else []
        if any(not self.queue[c] for c in come) or any(self.in_flight[c] == self.data["slots"] for c in go):
            return False
        count = 0 if op == "nop" else block["count"][i]
        received = [self.queue[c].popleft() for c in come]
        if any(len(message) != count for message in received):
            raise Wrong(f"[P4] {where}: a message of another size")
        self.in_flight.subtract(come)
        at = lambda side, k: (block[side + "_buffer"][i], block[side][i] + k)
        # Reads come before writes, as operands do not overlap.
        group = self.data["groups"][block["recv_group"]] if len(come) > 1 else {}
        own = group.get("own") if group.get("kind") == "fan-in" else None
        values = [self.value(r, op, [m[k] for m in received], at("src", k), at("dst", k), own, where)
                  for k in range(count)]
        for k, value in enumerate(values):
            if op in WRITES:
                self.held[r][at("dst", k)] = value
        for c in go:
            self.queue[c].append(values)
            self.in_flight[c] += 1
            for chunk, contributions, _ in values:
                self.carried[chunk, self.path_of[c], contributions] += 1
        return True

    def value(self, r, op, received, src, dst, own, where):
        """own: of a fan-in, how many messages come before the source."""
        terms = list(received)
        if own is not None:
            if op in READS:
                terms.insert(own, self.read(r, src, where))
            total = terms[0]
            for term in terms[1:]:
                total = self.add(total, term, where)
            return total[:2] + (self.sums.add_all([term[2] for term in terms]),)
        if len(received) > 1:
            for term in received[1:]:
                terms[0] = self.add(terms[0], term, where)
            terms = [terms[0][:2] + (self.sums.in_switch(),)]
        for operand in ([src] if op in READS else []) + ([dst] if op == "re" else []):
            terms.append(self.read(r, operand, where))
        return terms[0] if len(terms) == 1 else self.add(terms[0], terms[1], where)

    def read(self, r, operand, where):
        if operand not in self.held[r]:
            raise Wrong(f"[P7] {where}: reads what nothing has written")
        return self.held[r][operand]

    def add(self, a, b, where):
        if a[0] != b[0] or a[1] & b[1]:
            raise Wrong(f"[P7] {where}: adds another chunk, or a contribution twice")
        return (a[0], a[1] | b[1], self.sums.add(a[2], b[2]))

    def check_outputs(self):
        """Raises where an output is wrong; returns whether all ranks have the same bits."""
        expressions = defaultdict(set)
        for r, chunks in enumerate(self.chunks_of(self.collective.after)):
            for slot, c in enumerate(chunks):
                wanted = self.collective.after[self.collective.part_of[c]][r]
                if self.collective.always_empty(c):
                    continue
                chunk, contributions, expression = self.held[r].get(("o", slot), (None, None, None))
                if chunk != c or contributions != wanted:
                    raise Wrong(f"[P8] rank {r} output slot {slot}: does not have what it needs of chunk {c}")
                if len(wanted) > 1:
                    expressions[c].add(expression)
        return all(len(found) < 2 for found in expressions.values())


def merged_into(schedule_cut, program_cut):
    """By chunk of the schedule: the chunk of the program in which it lies."""
    ends = lambda cut: [(cut.part_of[c], Fraction(cut.weight_before[c] + cut.weights[c], cut.part_weight[cut.part_of[c]]))
                        for c in range(cut.chunks)]
    into, at, own = {}, 0, ends(program_cut)
    begin = (0, Fraction(0))
    for c, end in enumerate(ends(schedule_cut)):
        if schedule_cut.weights[c] == 0:
            continue
        begin = max(begin, (end[0], Fraction(0)))
        while own[at] <= begin:
            at += 1
        if end > own[at]:
            raise Wrong(f"[P10] program chunk {at}: ends inside chunk {c} of the schedule")
        into[c], begin = at, end
    return into


def violation(plan, schedule, collective, program_cut, path_error):
    """The first violation of the program of a plan whose schedule is right, and of what the plan claims. The schedule
    is plain where there is a program."""
    try:
        triples, same = schedule_carries(schedule, collective, Sums())
        if plan.get("bitwise_same", same) != same:
            raise Wrong("[C1] bitwise_same: the schedule says otherwise")
        if program_cut is None:
            return None
        program = Program(plan["program"], schedule.machine, program_cut, path_error)
        program.check_paths()
        program.run()
        program_same = program.check_outputs()
        into, wanted = merged_into(collective, program_cut), Counter()
        for c in range(collective.chunks):
            if not collective.always_empty(c):
                wanted[into[c]] += 1
        for (c, chain, contributions), times in triples.items():
            if program.carried[into[c], chain, contributions] != times:
                raise Wrong(f"[P10] chunk {c}: the program does not carry what the schedule does")
        if sum(times * wanted[c] for (c, _, _), times in program.carried.items()) != sum(triples.values()):
            raise Wrong("[P10] program: carries more than the schedule does")
        trees = {tuple(sorted(path)) for path in schedule.path}
        if any(group["kind"] != "fan-in" and tuple(sorted(group["path"])) not in trees
               for group in plan["program"].get("groups", [])):
            raise Wrong("[P10] program: a group takes a path that the schedule does not")
        if plan.get("bitwise_same") and not program_same:
            raise Wrong("[C1] bitwise_same: the program says otherwise")
    except Wrong as wrong:
        return str(wrong)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        return f"[P1] program: cannot be read: {error!r}"
    return None
