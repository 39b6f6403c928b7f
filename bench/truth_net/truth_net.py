#!/usr/bin/env python3
"""Predictions against measurements between hosts.

Hosts are network namespaces of this machine with shaped links (tools/net/hosts.sh), so times are known to about 1 %.
For each shape of network this writes the topology as XML, lets `xccl-synth compare` predict engines, plans each, runs the
plans over libfabric's TCP with one process a rank, and prints a row for each shape, collective and size: predicted and
measured times of the first engine, their ratio for every engine, and how much faster than ring the first one is,
predicted and measured. It then says how many pairs of engines that differ by 5 % or more are in the predicted order.

  truth_net.py XCCL_SYNTH [--shapes L] [--collectives L] [--sizes L] [--engines L] [--hosts N] [--ranks N] [--csv FILE]

Needs root and Debian's iproute2. Rates keep within 8 Gbit/s in all.
"""
import argparse
import csv
import itertools
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "net"))
from shapes import Hosts, may_make_hosts, shapes, tool

def measure(options, shape, folder, rows):
    topology = os.path.join(folder, f"{shape.name}.xml")
    with open(topology, "w") as file:
        file.write(shape.xml())
    with Hosts(shape) as hosts:
        for collective in options.collectives.split(","):
            for size in options.sizes.split(","):
                for engine in options.engines.split(","):
                    plan = os.path.join(folder, f"{shape.name}-{collective}-{size}-{engine}.json")
                    try:
                        tool(options.binary, ["plan", topology, "-c", collective, "-s", size, "-e", engine, "-o", plan,
                                              "--time-limit", "20s", "--json"])
                    except RuntimeError as error:
                        print(f"{shape.name} {collective} {size} {engine}: no plan: {error}", file=sys.stderr)
                        continue
                    predicted = json.loads(tool(options.binary, ["simulate", plan, "--level", "program", "--sizes", size,
                                                                 "--json"]))[0]["time_us"]
                    result = json.loads(hosts.run(options.binary, ["run", plan, "--sizes", size, "--iters",
                                                                   str(options.iterations), "--warmup", "1", "--json",
                                                                   "--network", "ofi", "--timeout", "60s"]))
                    measured = min(row["slowest_us"] for row in result)
                    wrong = sum(row["wrong"] for row in result)
                    rows.append(dict(shape=shape.name, hosts=shape.hosts, ranks=shape.hosts * shape.ranks,
                                     collective=collective, size=size, engine=engine, predicted_us=round(predicted, 1),
                                     measured_us=round(measured, 1), ratio=round(measured / predicted, 4), wrong=wrong))
                    print("{shape} {collective} {size} {engine}: {ratio}".format(**rows[-1]), file=sys.stderr, flush=True)

def show(engines, rows):
    groups = {}
    for row in rows:
        groups.setdefault((row["shape"], row["collective"], row["size"]), {})[row["engine"]] = row
    head = ["network", "collective", "size", f"{engines[0]}, predicted ms", "measured ms"]
    head += [f"measured ÷ predicted: {engine}" for engine in engines] + ["faster than ring, predicted", "measured"]
    print("|", " | ".join(head), "|")
    print("|---|---|---|" + "---:|" * (len(head) - 3))
    pairs = right = 0
    for place, group in groups.items():
        first, ring = group.get(engines[0]), group.get("ring")
        cells = list(place) + [f"{first[key] / 1000:.1f}" if first else "" for key in ("predicted_us", "measured_us")]
        cells += [f"{group[engine]['ratio']:.3f}" if engine in group else "" for engine in engines]
        cells += [f"{ring[key] / first[key]:.2f}" if first and ring else "" for key in ("predicted_us", "measured_us")]
        print("|", " | ".join(cells), "|")
        for a, b in itertools.combinations(group.values(), 2):
            if max(a["measured_us"], b["measured_us"]) < 1.05 * min(a["measured_us"], b["measured_us"]):
                continue
            pairs += 1
            right += (a["measured_us"] < b["measured_us"]) == (a["predicted_us"] < b["predicted_us"])
    print(f"\n{sum(row['wrong'] for row in rows)} elements are wrong in {len(rows)} runs. Of {pairs} pairs of engines that differ by "
          f"5 % or more, {right} are in the predicted order.")

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--shapes", default="")
    parser.add_argument("--collectives", default="allgather,reduce_scatter,allreduce,broadcast,alltoall")
    parser.add_argument("--sizes", default="64MiB")
    parser.add_argument("--engines", default="auto,ring")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=1, help="of each host")
    parser.add_argument("--iterations", type=int, default=2)
    parser.add_argument("--csv")
    options = parser.parse_args()
    options.binary = os.path.abspath(options.binary)
    may_make_hosts()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for shape in shapes(options.hosts, options.ranks):
            if not options.shapes or shape.name in options.shapes.split(","):
                measure(options, shape, folder, rows)
    show(options.engines.split(","), rows)
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)

if __name__ == "__main__":
    main()
