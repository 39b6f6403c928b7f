#!/usr/bin/env python3
"""Time and memory of whole commands of xccl-synth: search, bound, simulation, proof, lowering, file.

Usage: commands.py XCCL_SYNTH. A command takes place in a folder of its own, with what those before it wrote there.
"""
import os
import subprocess
import sys
import tempfile
import time

COMMANDS = [
    "plan torus:32x32 -c allgather -o plan.json",
    "verify plan.json",
    "plan torus:200x200 -c allgather --size 1GiB",
    "plan torus:200x200 -c allreduce --size 1GiB",
    "plan rail-64 -c allgather --size 1GiB",
    "plan torus:16x16 -c allgather --engine greedy --chunks 1 --model blocking --size 1GiB",
    "plan torus:32x32 -c allgather --engine greedy --chunks 1 --model blocking --size 1GiB",
]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    binary = os.path.abspath(sys.argv[1])
    print("| command | CPU s | wall s | MiB |\n|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS:
            began = time.monotonic()
            process = subprocess.Popen([binary, *command.split()], cwd=folder, stdout=subprocess.DEVNULL)
            _, status, used = os.wait4(process.pid, 0)
            if status != 0:
                sys.exit(f"{command}: exit {os.waitstatus_to_exitcode(status)}")
            print(f"| `{command}` | {used.ru_utime + used.ru_stime:.2f} | {time.monotonic() - began:.2f} | {used.ru_maxrss >> 10} |",
                  flush=True)
        size = os.path.getsize(os.path.join(folder, "plan.json")) / 1e6
    print(f"\nThe plan file has {size:.0f} MB.")


if __name__ == "__main__":
    main()
