#!/usr/bin/env python3
"""Runs every collective on hosts over libfabric's TCP, and checks every element.

Hosts are network namespaces (hosts.sh); links are not shaped. Prints a line for each number of hosts and ranks; the
exit status is 1 if anything failed, 77 where namespaces cannot be made.

  check_hosts.py XCCL_SYNTH [--hosts LIST] [--sizes LIST]
"""
import argparse
import json
import os
import sys
import tempfile

from shapes import Hosts, may_make_hosts, star, tool

COLLECTIVES = ["allreduce", "allgather", "reduce_scatter", "alltoall", "broadcast", "reduce", "gather", "scatter"]

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--hosts", default="2x1,2x2,2x4,4x1,4x2,4x4,8x1,8x2,8x4", help="hosts x ranks of each")
    parser.add_argument("--sizes", default="1KiB,300000,2MiB")
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
        failed += wrong != 0
        print(f"{hosts} hosts of {ranks} ranks: {len(COLLECTIVES)} collectives, {rows} rows, {wrong} wrong", flush=True)
    sys.exit(1 if failed else 0)

if __name__ == "__main__":
    main()
