"""Draws requests. draw(seed, number) is the same in every tree with the same fuzz corpus."""

import json
import pathlib
import random
import typing

from machines import Machine, bandwidth_text, draw_machine, time_text

ENGINES = (
    "ring tree binomial k-nomial double-binary-tree spread circulant halving-doubling recursive-doubling recursive-multiplying "
    "bruck pairwise nhr swing bine pat 2d-ring 2d-torus 2d-mesh hierarchical-ring hierarchical-exchange direct torus-trees "
    "hierarchical-alltoall torus-alltoall levels rail-trees multicast in-network bfb forest flow greedy mended smt auto"
).split()
# The engines that serve a collective; auto, greedy and smt serve all.
TREES = "tree binomial k-nomial"
ALL_TO_ALL = "ring halving-doubling bruck nhr swing bine pat 2d-ring 2d-torus 2d-mesh hierarchical-ring direct multicast in-network bfb forest"
SERVES = {
    "allgather": f"{ALL_TO_ALL} recursive-doubling recursive-multiplying pairwise",
    "reduce_scatter": f"{ALL_TO_ALL} recursive-multiplying pairwise",
    "allreduce": f"{ALL_TO_ALL} {TREES} recursive-doubling recursive-multiplying double-binary-tree hierarchical-exchange",
    "broadcast": f"ring {TREES} double-binary-tree spread circulant halving-doubling nhr bine 2d-ring 2d-torus 2d-mesh "
    "hierarchical-ring rail-trees torus-trees direct multicast in-network bfb forest",
    "gather": f"{TREES} nhr bine direct flow",
    "alltoall": "recursive-multiplying bruck pairwise bine direct hierarchical-alltoall torus-alltoall flow",
    "sendrecv": "direct flow",
}
SERVES |= {
    "barrier": SERVES["allreduce"],
    "reduce": SERVES["broadcast"],
    "scatter": SERVES["gather"],
    **{kind + "v": SERVES[kind] for kind in ("allgather", "reduce_scatter", "alltoall")},
}
COLLECTIVES = "allreduce allgather reduce_scatter broadcast reduce gather scatter alltoall".split()
ROOTED = ("broadcast", "reduce", "gather", "scatter")
TYPES = "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 f8e4m3 f8e5m2".split()
LIBRARY = (
    "dgx1 dgx1-full dgx2 dgx-a100 dgx-h100 hgx-h200 dgx-b200 dgx-b300 gb200-nvl72 gb300-nvl72 nvl72-2 nvl72-4 nvl72-8 "
    "ndv2 ndv4 ndv5 ndv6 p4d p5 p5en p6-b200 a3-mega a4 trn2 trn2-ultraserver mi250x mi250x-full mi300x mi325x mi355x ascend-8 "
    "cloudmatrix384 tpu-v4 tpu-v5e tpu-v5p tpu7x "
    "fat-tree-128 dragonfly-72 rail-2 rail-4 rail-8 rail-16 rail-32 rail-64 rail-128"
).split()
SMALL_LIBRARY = "dgx1 dgx1-full dgx-a100 dgx-h100 dgx-b300 ndv2 ndv4 ndv5 p4d p5 p5en mi250x mi250x-full mi300x mi355x ascend-8 trn2".split()
EMITS = ("cuda", "host", "chakra", "msccl-xml", "mscclpp-json", "svg", "dot", "perfetto")
XML = "machine.xml"


class Request(typing.NamedTuple):
    """What one request asks for. Flags are tuples of words; files are written beside the machine's."""

    play: str  # a function of plays.PLAYS
    topology: Machine | str  # a machine that is written as machine.xml, or the word of the command line
    of_machine: tuple = ()  # flags that change the machine
    of_collective: tuple = ()
    of_plan: tuple = ()
    size: str = "64KiB"
    files: tuple = ()  # (name, text)
    then: tuple = ()  # what is done with the plan: steps of plays.STEPS
    sizes: tuple = ()  # sizes of plans, ascending
    changes: tuple = ()  # seeds of changes of one file
    target: str = ""  # the file that is changed

    def topology_word(self):
        return XML if isinstance(self.topology, Machine) else self.topology


class Drawn(typing.NamedTuple):
    """A machine that was drawn."""

    topology: Machine | str
    flags: tuple
    files: tuple
    ranks: int


def flat(flags):
    return [word for flag in flags for word in flag]


# ---- Sizes and numbers ----


def draw_size(r, most=1 << 24):
    """Bytes: log-uniform, at powers and beside them, primes, and almost nothing."""
    way = r.random()
    if way < 0.06:
        return r.choice((0, 0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 64, 127))
    if way < 0.4:
        return max(0, (1 << r.randint(7, most.bit_length() - 1)) + r.choice((-4, -1, 0, 0, 1, 4)))
    if way < 0.5:
        return r.choice((65521, 65537, 99991, 999983, 1048573, 7919, 104729))
    if way < 0.55:
        return r.choice((10**9 + 7, 1 << 30, (1 << 32) + 4, 3 << 33, 1 << 40))
    return int(2 ** r.uniform(7, most.bit_length() - 1))


def size_text(r, size):
    for unit, scale in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size and size % scale == 0 and r.random() < 0.7:
            return f"{size // scale}{unit}"
    return str(size)


# ---- Machines ----


def draw_form(r):
    """(a short form of a family, its ranks)"""
    a, b, c = r.randint(1, 4), r.randint(1, 3), r.randint(1, 2)
    form, ranks = r.choice(
        (
            (f"torus:{a}x{b}", a * b),
            (f"torus:{b}x{c}x2", 2 * b * c),
            (f"mesh:{a}x{b}", a * b),
            (f"ring:{2 * a}", 2 * a),
            (f"full-mesh:{a + c}", a + c),
            (f"hypercube:{b}", 1 << b),
            (f"nvswitch:{a + b}", a + b),
            ("fat-tree:k=2", 2),
            (f"fat-tree:rails={b},hosts={c}", b * c),
            (f"leaf-spine:{b}x{c}x{a}", a * b),
            (f"dragonfly:{b + 1}x{c}x{c}", (b + 1) * c * c),
        )
    )
    options = []
    if r.random() < 0.4:
        options.append(f"bandwidth={bandwidth_text(int(10 ** r.uniform(6, 12)))}")
    if r.random() < 0.4:
        options.append(f"latency={r.choice(('0ns', '1ps', '700ns', '3us', time_text(r.randrange(10**7)))) }")
    if r.random() < 0.3:
        options.append(f"overhead={r.choice(('0ns', '50ns', '1us'))}")
    if form.startswith("nvswitch") and r.random() < 0.6:
        options += r.choice((["multicast=true"], ["reduce=true"], ["multicast=true", "reduce=true"]))
    if form.startswith(("leaf-spine", "fat-tree")) and r.random() < 0.4:
        options.append(r.choice(("oversubscription=2", "oversubscription=3:2", "uplink-bandwidth=7GB/s", "multicast=true")))
    return form + ("@" + ",".join(options) if options else ""), ranks


# Families, with their ranks.
FAMILIES = (
    ('<nvswitch gpus="2" multicast="true" reduce="true"/>', 2),
    ('<nvswitch gpus="3" bandwidth="300GB/s"/>', 3),
    ('<full-mesh ranks="3" bandwidth="25GB/s"/>', 3),
    ('<ring ranks="4"/>', 4),
    ('<mesh dims="2x2"/>', 4),
    ('<torus dims="1x3" latency="0ns"/>', 3),
    ('<hypercube dim="1"/>', 2),
    ('<gpu id="0"/>', 1),
)
FABRICS = (
    "",
    'type="switch" id="core"',
    'type="rails"',
    'type="rails" spines="2" oversubscription="2"',
    'type="leaf-spine" leaves="2" spines="1"',
    'type="fat-tree" k="4"',
    'type="dragonfly" groups="2" routers="2"',
)


def draw_cluster(r):
    """(the text of a cluster, its ranks): hosts of one family, NICs or none, a fabric; sometimes pods of them."""
    nics, hosts = r.randint(0, 2), r.randint(1, 3)
    family, ranks = r.choice(FAMILIES)
    inside = [family]
    if nics:
        inside += [f'<nic id="nic" count="{nics}"/>', '<link from="gpu:*" to="nic:*" bandwidth="25GB/s" latency="600ns"/>']
    fabric = f'<fabric {r.choice(FABRICS)} bandwidth="{r.choice((12, 25, 50))}GB/s" latency="{r.choice((0, 1300))}ns"/>'
    text, ranks = f'<cluster hosts="{hosts}">\n{" ".join(inside)}\n{fabric}\n</cluster>', ranks * hosts
    if r.random() < 0.2:
        text, ranks = f'<cluster hosts="2">\n{text}\n<fabric id="top" bandwidth="25GB/s"/>\n</cluster>', 2 * ranks
    return f'<topology name="cluster">\n{text}\n</topology>\n', ranks


def draw_topology(r, most):
    way = r.random()
    flags, files = [], ()
    if way < 0.6:
        topology = draw_machine(r, most)
        ranks = len(topology.gpus())
    elif way < 0.83:
        topology, ranks = draw_form(r)
    elif way < 0.95:
        topology = "cluster.xml"
        text, ranks = draw_cluster(r)
        files = ((topology, text),)
    else:
        topology, ranks = r.choice(SMALL_LIBRARY), 8
    hosts = {node.host for node in topology.nodes if node.host} if isinstance(topology, Machine) else ()
    if hosts and len(hosts) == 1 and any(node.kind == "nic" for node in topology.nodes) and r.random() < 0.6 or r.random() < 0.01:
        copies = r.randint(1, 3)
        ranks *= copies
        flags.append(("--hosts", str(copies)))
        flags += r.choice(([], [("--rails",)], [("--no-rails",)]))
        flags += r.choice(([], [("--fabric", r.choice(("oversubscription=2", "type=leaf-spine,leaves=2,spines=1", "latency=0ns")))]))
    if r.random() < 0.05:
        flags.append(("--plain-switches",))
    if r.random() < 0.08:
        flags += draw_damage(r, topology)
    return Drawn(topology, tuple(flags), files, max(1, ranks))


def draw_own_machine(r, most):
    machine = draw_machine(r, most)
    return Drawn(machine, (), (), max(1, len(machine.gpus())))


def draw_damage(r, topology):
    """Flags that take links away or slow them down."""
    if isinstance(topology, Machine) and topology.links:
        link = r.choice(topology.links)
        ends = (link.tail, link.head)
    else:
        ends = ("0", "1")
    way = r.random()
    if way < 0.4:
        return [("--without-link", ends[0] + r.choice(("->", "<->")) + ends[1])]
    return [("--degrade", f"{ends[0]}->{ends[1]}={r.choice(('0.5', '0.1', '1', '0.000000001'))}")]


# ---- Collectives ----


def draw_members(r, ranks):
    """A list of ranks in the form of --ranks."""
    members = r.sample(range(ranks), r.randint(1, ranks))
    if r.random() < 0.7:
        members.sort()
    return members


def draw_tables(r, ranks):
    """The text of a collective of one's own: parts that some ranks hold, or add up, and others need."""
    members = sorted(draw_members(r, ranks)) if r.random() < 0.3 else list(range(ranks))
    pre, post, sizes = [], [], []
    for part in range(r.randint(1, 5)):
        sizes.append(r.choice((1, 1, 1, 2, 5, 0)))
        terms = r.sample(members, r.randint(1, len(members))) if r.random() < 0.4 else [r.choice(members)]
        pre += [{"rank": term, "part": part, "contributions": [term]} for term in terms]
        needers = r.sample(members, r.randint(1, len(members)))
        post += [{"rank": needer, "part": part, "contributions": sorted(terms)} for needer in needers]
    table = {"name": "own", "ranks": members, "part_sizes": sizes, "pre": pre, "post": post}
    return json.dumps(table)


def draw_groups(r, ranks):
    groups = []
    for g in range(r.randint(1, 3)):
        group = {"name": f"g{g}", "collective": r.choice(COLLECTIVES), "size": size_text(r, draw_size(r, 1 << 22))}
        if r.random() < 0.7:
            group["ranks"] = draw_members(r, ranks)
        if r.random() < 0.3:
            group["count"] = r.randint(1, 3)
        groups.append(group)
    return json.dumps({"name": "step", "groups": groups})


def draw_counts(r, kind, members):
    count = lambda: r.choice((0, 1, 1, 2, 3, 7, 1000))
    if kind == "alltoallv":
        return "".join(",".join(str(count()) for _ in range(members)) + "\n" for _ in range(members))
    return ",".join(str(count()) for _ in range(members)) + "\n"


def draw_collective(r, ranks):
    """(flags, files)"""
    flags, files, way, members = [], [], r.random(), ranks
    if way > 0.97:
        return ((("--collective-file", "own.json"),), (("own.json", draw_tables(r, ranks)),))
    if r.random() < 0.15:
        chosen = draw_members(r, ranks)
        members = len(chosen)
        flags.append(("--ranks", ",".join(map(str, chosen))))
        if r.random() < 0.3:
            flags.append(("--no-relays",))
    if way > 0.9:
        kind = r.choice(("allgatherv", "reduce_scatterv", "alltoallv"))
        files.append(("counts.csv", draw_counts(r, kind, members)))
        flags.append(("--counts", "counts.csv"))
    elif way > 0.86:
        kind = "sendrecv"
        pairs = {(r.randrange(ranks), r.randrange(ranks)) for _ in range(r.randint(1, 4))}
        flags.append(("--pairs", ",".join(f"{a}>{b}" for a, b in sorted(pairs))))
    else:
        kind = "barrier" if way > 0.84 else r.choice(COLLECTIVES)
    if kind in ROOTED and r.random() < 0.5:
        flags.append(("--root", str(r.randrange(ranks))))
    return (("-c", kind), *flags), tuple(files)


# ---- Plans ----


def draw_engine(r, kind):
    """auto often; greedy, forest and flow often, where most of the code is; seldom one that does not serve the collective."""
    way = r.random()
    if way < 0.25:
        return "auto"
    if way < 0.4:
        return r.choice(("greedy", "forest", "flow", "bfb"))
    if way < 0.43:
        return r.choice(ENGINES)
    if way < 0.45:
        return "smt"
    return r.choice(SERVES.get(kind, "direct flow").split())


def draw_plan_flags(r, engine):
    flags = [("-e", engine)] if engine != "auto" or r.random() < 0.2 else []
    maybe = lambda share, *words: flags.append(words) if r.random() < share else None
    maybe(0.15, "--model", r.choice(("pipelined", "blocking")))
    maybe(0.12, "--chunks", str(r.choice((1, 2, 3, 4, 5, 7, 8))))
    maybe(0.04, "--steps", str(r.choice((1, 2, 3, 5, 9, 40))))
    maybe(0.02, "--rounds", str(r.randint(1, 9)))
    maybe(0.05, "--seed", str(r.choice((0, 1, 2, 99, 2**31))))
    maybe(0.05, "--allow-divergent")
    maybe(0.2, "--machine", r.choice(("none", "ampere", "hopper", "blackwell", "gb300", "mi250x", "mi300x")))
    maybe(0.05, "--max-ctas", str(r.choice((1, 2, 8, 64))))
    maybe(0.08, "--verify-passes")
    maybe(0.03, "--time-limit", r.choice(("1ms", "100ms", "1s", "3s")))
    maybe(0.03, "--memory-limit", r.choice(("64MiB", "256MiB", "1GiB", "4GiB")))
    maybe(0.04, "--explain")
    return flags


def most_ranks(r, engine):
    """auto asks all engines, so most of its machines are small."""
    few = engine in ("auto", "greedy", "smt")
    if r.random() < 0.04:
        return 12 if few else 24
    return r.randint(2, 6) if few else r.randint(2, 12)


# The commands that are run on a plan, and how often each is.
STEPS = (
    (("bound",), 0.3),
    (("verify",), 0.9),
    (("check_plan",), 0.5),
    (("simulate",), 0.6),
    (("program",), 0.3),
    (("again",), 0.1),
    (("emit", "cuda"), 0.1),
    (("emit", "host"), 0.1),
    (("emit", "chakra"), 0.06),
    (("emit", "msccl-xml"), 0.15),
    (("emit", "mscclpp-json"), 0.12),
    (("emit", "svg"), 0.05),
    (("emit", "dot"), 0.05),
    (("emit", "perfetto"), 0.05),
    (("view",), 0.05),
    (("from",), 0.06),
)


def draw_run(r):
    """run and its flags."""
    size = size_text(r, draw_size(r, 1 << 16) % (1 << 20))
    words = ["run", "--sizes", size, "--dtype", r.choice(TYPES), "--redop", r.choice(("sum", "prod", "min", "max", "avg"))]
    return (*words, *(("--processes",) if r.random() < 0.15 else ()))


def draw_steps(r):
    steps = [step for step, share in STEPS if r.random() < share]
    return tuple(steps + ([draw_run(r)] if r.random() < 0.3 else []))


def kind_of(of_collective):
    return next((flag[1] for flag in of_collective if flag[0] == "-c"), "")


def draw_plan(r):
    if r.random() < 0.04:
        return draw_group_plan(r)
    auto = r.random() < 0.25
    drawn = draw_topology(r, most_ranks(r, "auto" if auto else ""))
    of_collective, files = draw_collective(r, drawn.ranks)
    engine = "auto" if auto else draw_engine(r, kind_of(of_collective))
    if engine == "smt" and drawn.ranks > 5:
        engine = "greedy"  # Z3 takes long
    return Request(
        "plan",
        drawn.topology,
        drawn.flags,
        of_collective,
        tuple(draw_plan_flags(r, engine)),
        size_text(r, draw_size(r)),
        drawn.files + files,
        draw_steps(r),
    )


def draw_group_plan(r):
    drawn = draw_topology(r, 6)
    return Request(
        "plan",
        drawn.topology,
        drawn.flags,
        (("--groups", "groups.json"),),
        (("-e", r.choice(("auto", "auto", "greedy", "direct", "bine"))),),
        "",
        drawn.files + (("groups.json", draw_groups(r, drawn.ranks)),),
        (("verify",), ("check_plan",), ("simulate",), draw_run(r)),
    )


def draw_sizes(r):
    """One collective at several sizes, ascending."""
    drawn = draw_topology(r, r.randint(2, 5))
    sizes = sorted({max(256, draw_size(r, 1 << 26)) for _ in range(4)})
    flags = (("--model", "blocking"),) if r.random() < 0.15 else ()
    of_collective = (("-c", r.choice(COLLECTIVES)),)
    return Request("sizes", drawn.topology, drawn.flags, of_collective, flags, "", drawn.files, sizes=tuple(map(str, sizes)))


def draw_engines(r):
    """One collective by auto and by every other engine."""
    drawn = draw_topology(r, r.randint(2, 5))
    of_collective, size = (("-c", r.choice(COLLECTIVES)),), size_text(r, draw_size(r))
    return Request("engines", drawn.topology, drawn.flags, of_collective, (), size, drawn.files)


def draw_relations(r):
    """A machine, the same with its nodes in another order, and without one of its links."""
    topology = draw_machine(r, r.randint(2, 5))
    links = topology.links
    less = r.choice(links) if links else None
    kind = r.choice([kind for kind in COLLECTIVES if kind not in ROOTED])
    others = (
        topology._replace(nodes=tuple(r.sample(topology.nodes, len(topology.nodes)))),
        topology._replace(links=tuple(link for link in links if link is not less)),
    )
    files = tuple(zip(("relabelled.xml", "less.xml"), (other.xml() for other in others)))
    return Request("relations", topology, (), (("-c", kind),), (("--machine", "none"),), size_text(r, draw_size(r)), files)


def draw_compare(r):
    """compare at two sizes, by a few engines, with pages or on machines with failed cables; or a description of the machine."""
    drawn = draw_topology(r, r.randint(2, 6))
    kind = r.choice(COLLECTIVES)
    engines = {r.choice([*SERVES[kind].split(), "greedy"]) for _ in range(2)}
    flags = r.choice(
        (
            (),
            (("--html", "page.html"), ("--svg", "page.svg")),
            (("--csv",),),
            (("--failures", str(r.randint(1, 3))), ("--failed-cables", str(r.randint(1, 2)))),
            (("--machine", r.choice(("ampere", "hopper"))),),
        )
    )
    sizes = tuple(str(draw_size(r, 1 << 22)) for _ in range(2))
    of_plan = (("--engines", ",".join(sorted(engines))), *flags)
    return Request("compare", drawn.topology, drawn.flags, (("-c", kind),), of_plan, "", drawn.files, sizes=sizes)


def draw_repair(r):
    """A plan, and another of the damaged machine that starts from it."""
    drawn = draw_own_machine(r, r.randint(3, 8))
    of_collective, files = draw_collective(r, drawn.ranks)
    engine = draw_engine(r, kind_of(of_collective))
    damage = [flag for _ in range(r.randint(1, 3)) for flag in draw_damage(r, drawn.topology)]
    return Request(
        "repair",
        drawn.topology,
        tuple(damage),
        of_collective,
        (("-e", "greedy" if engine == "smt" else engine),),
        size_text(r, draw_size(r)),
        files,
        (("verify",), ("check_plan",), ("simulate",), draw_run(r)),
    )


# Files of other tools: what the fuzz targets begin with.
CORPUS = pathlib.Path(__file__).resolve().parents[1] / "fuzz" / "corpus"


def corpus(r, *folders):
    """The text of one file of a corpus; some begin with a digit that chooses flags."""
    files = sorted(file for folder in folders for file in (CORPUS / folder).iterdir())
    return r.choice(files).read_text().lstrip("0123456789")


TARGETS = (
    *3 * ("plan",),
    *3 * ("machine",),
    *("foreign", "msccl-xml", "mscclpp-json"),
    *("own.json", "groups.json", "counts.csv"),
)


def draw_changed(r):
    """A file that is changed a little before it is read."""
    target = r.choice(TARGETS)
    own = target.endswith((".json", ".csv"))
    drawn = draw_own_machine(r, 4) if own else draw_topology(r, 4)
    if target == "machine" and r.random() < 0.4:
        drawn = Drawn("other.xml", (), (("other.xml", corpus(r, "nccl_xml", "native_xml", "nvidia_smi")),), 1)
    if target == "foreign":
        drawn = Drawn("ring:2", (), (("foreign", corpus(r, "msccl_xml", "mscclpp", "printed_sends")),), 2)
    kind, files = r.choice(COLLECTIVES), drawn.files
    of_collective, engine = (("-c", kind),), r.choice([*SERVES[kind].split(), "greedy"])
    if target == "own.json":
        of_collective, engine, files = (("--collective-file", target),), "direct", ((target, draw_tables(r, drawn.ranks)),)
    elif target == "groups.json":
        of_collective, engine, files = (("--groups", target),), "direct", ((target, draw_groups(r, drawn.ranks)),)
    elif target == "counts.csv":
        kind = r.choice(("allgatherv", "reduce_scatterv", "alltoallv"))
        of_collective, engine = (("-c", kind), ("--counts", target)), "direct"
        files = ((target, draw_counts(r, kind, drawn.ranks)),)
    return Request(
        "changed",
        drawn.topology,
        drawn.flags,
        of_collective,
        (("-e", engine),),
        "" if target == "groups.json" else size_text(r, draw_size(r, 1 << 20)),
        files,
        changes=tuple(r.randrange(2**32) for _ in range(r.choice((1, 1, 1, 2, 3)))),
        target=target,
    )


WORDS = ("", "-1", "0", "1", "7", "1e9", "abc", "99999999999999999999", "0x10", "1,2", "2-", "0>1", "1GiB", "8EiB", "-", "all", "ü", "1.5", "*")


def draw_odd(r):
    """A request with flags that make no sense, or not together."""
    request = draw_plan(r)
    flags = list(request.of_plan)
    for _ in range(r.randint(1, 2)):
        flag = r.choice(
            (
                "--chunks --steps --rounds --seed --model --machine --max-ctas --time-limit --memory-limit --size --root --ranks "
                "--pairs --counts --collective-file --engine --hosts --fabric --gpu-arch --gpus-per-switch --without-link --degrade "
                "--from --groups --for --pareto --explain --rails --no-rails --no-relays --output --json --no-such-flag"
            ).split()
        )
        alone = flag in ("--pareto", "--explain", "--rails", "--no-rails", "--no-relays", "--json", "--no-such-flag")
        flags.append((flag,) if alone else (f"{flag}={r.choice(WORDS)}",))
    if ("--pareto",) in flags:  # may search for hours
        flags.append(("--time-limit", "1s"))
    return request._replace(play="odd", of_plan=tuple(flags), then=())


# A play and how many of a hundred requests are of it.
SHARES = (
    (draw_plan, 39),
    (draw_changed, 36),
    (draw_odd, 8),
    (draw_sizes, 5),
    (draw_repair, 6),
    (draw_engines, 3),
    (draw_compare, 2),
    (draw_relations, 1),
)


def draw(seed, number):
    r = random.Random(f"{seed}/{number}")
    plays, shares = zip(*SHARES)
    return r.choices(plays, shares)[0](r)
