#!/usr/bin/env python3
"""Predicted times of programs beside published measurements.

Usage: truth_gpu.py XCCL_SYNTH. Plans each row with the model of its GPUs, and prints the program's time, the
published one and their ratio. The measurements are those that MSCCL++'s continuous integration compares with
(microsoft/mscclpp 1f5f065, test/deploy/perf_ndmv4.jsonl and perf_ndmv5.jsonl: 8 GPUs of an Azure host, or 16 of
two), of the algorithm that was fastest at each size.
"""
import json
import subprocess
import sys
import tempfile

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
# Machine, hosts, collective, bytes, microseconds.
ROWS = [
    ("ndv4", 1, "allreduce", 8 * KIB, 6.51),
    ("ndv4", 1, "allreduce", 24 * KIB, 7.24),
    ("ndv4", 1, "allreduce", 48 * KIB, 7.91),
    ("ndv4", 1, "allreduce", 72 * KIB, 8.28),
    ("ndv4", 1, "allreduce", 16 * MIB, 157),
    ("ndv4", 1, "allreduce", 32 * MIB, 289),
    ("ndv4", 1, "allreduce", 48 * MIB, 398),
    ("ndv4", 1, "allreduce", GIB, 7702),
    ("ndv4", 1, "allgather", GIB, 3683),
    ("ndv4", 1, "alltoall", GIB, 3888),
    ("ndv4", 2, "allreduce", 8 * KIB, 18.42),
    ("ndv4", 2, "allreduce", 24 * MIB, 311),
    ("ndv4", 2, "allreduce", 48 * MIB, 517),
    ("ndv4", 2, "allreduce", 3 * GIB, 25565),
    ("ndv4", 2, "allgather", 3 * GIB, 13168),
    ("ndv4", 2, "alltoall", GIB, 23072),
    ("ndv5", 1, "allreduce", 24 * KIB, 6.18),
    ("ndv5", 1, "allreduce", 48 * KIB, 6.62),
    ("ndv5", 1, "allreduce", 72 * KIB, 6.91),
    ("ndv5", 2, "allreduce", 8 * KIB, 15.10),
    ("ndv5", 2, "allreduce", 24 * MIB, 212),
    ("ndv5", 2, "allreduce", 48 * MIB, 363),
    ("ndv5", 2, "allreduce", 3 * GIB, 15989),
    ("ndv5", 2, "allgather", 3 * GIB, 7480),
    ("ndv5", 2, "alltoall", GIB, 11076),
]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(f"{'machine':<9} {'collective':<10} {'bytes':>10}  {'published us':>12} {'predicted us':>12} "
          f"{'ratio':>5}  {'engine':<22} blocks")
    within = 0
    with tempfile.TemporaryDirectory() as folder:
        for machine, hosts, collective, size, published in ROWS:
            command = [sys.argv[1], "plan", machine, "-c", collective, "-s", str(size), "-o",
                       folder + "/plan.json", "--json"]
            if hosts > 1:
                command += ["--hosts", str(hosts)]
            plan = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            ratio = plan["time_program_us"] / published
            within += 0.7 <= ratio <= 1.3
            print(f"{hosts} {machine:<7} {collective:<10} {size:>10}  {published:>12.2f} "
                  f"{plan['time_program_us']:>12.2f} {ratio:>5.2f}  {plan['engine']:<22} "
                  f"{plan['threadblocks']}", flush=True)
    print(f"{within} of {len(ROWS)} rows within 30 %")


if __name__ == "__main__":
    main()
