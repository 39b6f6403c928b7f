"""Makes a request smaller while the same fault remains."""

import json
import time

from draw import flat
from machines import Machine, from_checker
from plays import check_plan

PLAIN_BANDWIDTH, PLAIN_LATENCY_PS = 25 * 10**9, 500_000
SIZES = ("0", "1", "4", "64", "1KiB", "4KiB", "64KiB", "1MiB", "16MiB", "1GiB")
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def bytes_of(size):
    for unit, scale in UNITS.items():
        if size.endswith(unit):
            return int(size[:-3]) * scale
    return int(size)


def without_runs(items):
    """The items without a half of them, without a quarter, ... without a single one: each way once."""
    length = len(items)
    while length > 0:
        for first in range(0, len(items), length):
            yield items[:first] + items[first + length :]
        length //= 2


def smaller_machines(machine):
    for kept in without_runs(machine.nodes):
        yield machine.without_nodes({node.id for node in machine.nodes} - {node.id for node in kept})
    for kept in without_runs(machine.links):
        yield machine._replace(links=kept)
    if machine.arch:
        yield machine._replace(arch=None)
    plain_host = tuple(node._replace(host=None) for node in machine.nodes)
    if plain_host != machine.nodes:
        yield machine._replace(nodes=plain_host)
    for n, node in enumerate(machine.nodes):
        if node.multicast or node.reduce:
            yield machine._replace(nodes=machine.nodes[:n] + (node._replace(multicast=False, reduce=False),) + machine.nodes[n + 1 :])
    changes = (
        lambda link: link._replace(overhead_ps=0),
        lambda link: link._replace(bandwidth=PLAIN_BANDWIDTH),
        lambda link: link._replace(latency_ps=0),
        lambda link: link._replace(latency_ps=PLAIN_LATENCY_PS) if link.latency_ps else link,
        lambda link: link._replace(duplex=True),
    )
    for change in changes:  # first changes of all links, then of each
        for chosen in [range(len(machine.links)), *([n] for n in range(len(machine.links)))]:
            links = tuple(change(link) if n in chosen else link for n, link in enumerate(machine.links))
            if links != machine.links:
                yield machine._replace(links=links)


def smaller_flags(flags):
    yield from without_runs(flags)
    for n, (name, *values) in enumerate(flags):
        for value in values:
            if name == "-c":
                shorter = ["broadcast"]
            elif "," in value:
                shorter = [",".join(kept) for kept in without_runs(value.split(",")) if kept]
            else:
                shorter = [str(number) for number in (0, 1, 2) if value.isdigit() and number < int(value)]
            for word in shorter:
                if word != value:
                    yield flags[:n] + ((name, word),) + flags[n + 1 :]


def smaller_json(value):
    """Without a run of the entries of each list inside."""
    if isinstance(value, dict):
        for key, inner in value.items():
            for less in smaller_json(inner):
                yield {**value, key: less}
    elif isinstance(value, list):
        for kept in without_runs(value):
            yield kept
        for n, inner in enumerate(value):
            for less in smaller_json(inner):
                yield value[:n] + [less] + value[n + 1 :]


def smaller_texts(name, text):
    if name.endswith(".json"):
        for value in smaller_json(json.loads(text)):
            yield json.dumps(value)
    else:
        for kept in without_runs(text.splitlines(keepends=True)):
            yield "".join(kept)


# Same work, fewer and simpler parts: the order is that in which they are tried.
def smaller(request):
    for field in ("then", "changes", "sizes"):
        for kept in without_runs(getattr(request, field)):
            yield request._replace(**{field: kept})
    for field in ("of_plan", "of_machine", "of_collective"):
        for flags in smaller_flags(getattr(request, field)):
            yield request._replace(**{field: flags})
    if isinstance(request.topology, Machine):
        for machine in smaller_machines(request.topology):
            yield request._replace(topology=machine)
    for n, (name, text) in enumerate(request.files):
        for less in smaller_texts(name, text):
            yield request._replace(files=request.files[:n] + ((name, less),) + request.files[n + 1 :])
    for size in SIZES:
        if request.size and bytes_of(size) < bytes_of(request.size):
            yield request._replace(size=size)
    for n, size in enumerate(request.sizes):
        # Ascending sizes stay ascending, since times are held to rise with them.
        least = min(bytes_of(request.sizes[n - 1]), bytes_of(size)) if n > 0 else 0
        for less in SIZES:
            if least <= bytes_of(less) < bytes_of(size):
                yield request._replace(sizes=request.sizes[:n] + (less,) + request.sizes[n + 1 :])


def expanded(request, shell):
    """The request with its machine written out, so that links can be taken from it; None where it cannot be read."""
    for name, text in request.files:
        shell.write(name, text)
    done = shell.run("topo", request.topology_word(), *flat(request.of_machine), "--format", "xml")
    if done.code != 0:
        return None
    return request._replace(topology=from_checker(check_plan.Machine(done.out)), of_machine=())


def shrink(request, kind_of, kind, shell_of, seconds):
    """The smallest request found within some seconds for which kind_of, which plays it, returns `kind`. Each round takes the first
    smaller request that fails likewise; a request all of whose smaller ones pass is the answer."""
    end = time.monotonic() + seconds
    tried = {request}
    if not isinstance(request.topology, Machine):
        plain = expanded(request, shell_of())
        if plain is not None and kind_of(plain) == kind:
            request = plain
    found = True
    while found:
        found = False
        for candidate in smaller(request):
            if time.monotonic() > end:
                return request
            if candidate in tried:
                continue
            tried.add(candidate)
            if kind_of(candidate) == kind:
                request, found = candidate, True
                break
    return request
