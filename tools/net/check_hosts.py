#!/usr/bin/env python3
"""Runs every collective, and drawn calls of expert dispatch and combine, on hosts over libfabric's TCP; checks every element.

Hosts are network namespaces (hosts.sh); links are not shaped. Prints a line for each number of hosts and ranks; the
exit status is 1 if anything failed, 77 where namespaces cannot be made.

  check_hosts.py XCCL_SYNTH [--hosts LIST] [--sizes LIST] [--layers N] [--calls N] [--seed N]
"""
import argparse
import json
import os
import random
import sys
import tempfile

from shapes import Hosts, may_make_hosts, star, tool

COLLECTIVES = ["allreduce", "allgather", "reduce_scatter", "alltoall", "broadcast", "reduce", "gather", "scatter"]

def routing_file(draw, ranks, tokens, top_k, experts, folder):
    """Routings that no law draws: ranks without tokens, all tokens to one expert, choices left out."""
    def token():
        kind = draw.randrange(4)
        if kind == 0:
            return [-1] * top_k
        if kind == 1:
            return [0]
        chosen = draw.sample(range(experts), draw.randint(1, top_k))
        return [-1] + chosen[1:] if kind == 2 else chosen
    path = os.path.join(folder, "routing.json")
    with open(path, "w") as file:
        json.dump({"routing": [[token() for _ in range(draw.choice([0, 1, tokens]) if rank else tokens)]
                               for rank in range(ranks)]}, file)
    return path

def run_layer(draw, binary, net, topology, ranks, calls, folder):
    """Plans a layer of experts by lot and runs `calls` calls of dispatch and as many of combine: rows, wrong elements."""
    experts, tokens = ranks * draw.randint(1, 4), draw.choice([1, 7, 64, 200])
    top_k = min(experts, draw.randint(1, 16))
    row = 16 * draw.randint(1, 40)  # bytes
    routing = draw.choice(["uniform", "zipf:0.8", "zipf:1.0", routing_file(draw, ranks, tokens, top_k, experts, folder)])
    plan = os.path.join(folder, "experts.json")
    tool(binary, ["plan", topology, "-c", "dispatch", "--experts", str(experts), "--top-k", str(top_k), "--tokens", str(tokens),
                  "--row", f"{row}B", "--routing", routing, "--aim", draw.choice(["latency", "throughput"]), "-o", plan])
    result = json.loads(net.run(binary, ["run", plan, "--routing", routing, "--iters", str(calls), "--json", "--dtype",
                                         draw.choice(["bfloat16", "half", "float"]), "--network", "ofi", "--timeout", "30s"]))
    return len(result), sum(row["wrong"] for row in result)

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--hosts", default="2x1,2x2,2x4,4x1,4x2,4x4,8x1,8x2,8x4", help="hosts x ranks of each")
    parser.add_argument("--sizes", default="1KiB,300000,2MiB")
    parser.add_argument("--layers", type=int, default=3, help="layers of experts for each number of hosts and ranks")
    parser.add_argument("--calls", type=int, default=20, help="calls of dispatch for each layer, and of combine")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    binary = os.path.abspath(options.binary)
    may_make_hosts()
    failed = 0
    for item in options.hosts.split(","):
        hosts, ranks = map(int, item.split("x"))
        shape = star("check", [0] * hosts, ranks)
        wrong, rows = 0, 0
        with tempfile.TemporaryDirectory() as folder, Hosts(shape) as net:
            topology = os.path.join(folder, "star.xml")
            with open(topology, "w") as file:
                file.write(shape.xml().replace('bandwidth="0B/s"', 'bandwidth="1GB/s"'))
            for collective in COLLECTIVES:
                plan = os.path.join(folder, f"{collective}.json")
                tool(binary, ["plan", topology, "-c", collective, "-s", "1MiB", "-o", plan])
                result = json.loads(net.run(binary, ["run", plan, "--sizes", options.sizes, "--iters", "3", "--json",
                                                     "--network", "ofi", "--timeout", "30s"]))
                rows += len(result)
                wrong += sum(row["wrong"] for row in result)
            draw = random.Random(f"{options.seed} {item}")
            layers = [run_layer(draw, binary, net, topology, shape.hosts * ranks, options.calls, folder)
                      for _ in range(options.layers)]
            rows += sum(layer[0] for layer in layers)
            wrong += sum(layer[1] for layer in layers)
        failed += wrong != 0 or rows == 0
        print(f"{hosts} hosts of {ranks} ranks: {len(COLLECTIVES)} collectives, {options.layers} layers of experts, "
              f"{rows} rows, {wrong} wrong", flush=True)
    sys.exit(1 if failed else 0)

if __name__ == "__main__":
    main()
