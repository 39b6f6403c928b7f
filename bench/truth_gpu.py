#!/usr/bin/env python3
"""Predicted times of programs beside published measurements.

Usage: truth_gpu.py XCCL_SYNTH [--picks]. Plans each row with the model of its GPUs, and prints the program's time,
the published one and their ratio; with --picks, what auto picks for allreduces of one host beside what NCCL and
MSCCL++ take. The measurements are those that MSCCL++'s continuous integration compares with
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


# Machine, size, and the times of NCCL and of MSCCL++ for an allreduce.
PICKS = [
    ("dgx-h100", "1KiB", "one-shot LL (NCCL `AllReduce_AGxLL_R`, MSCCL++ all-pairs packets up to 16 KiB)"),
    ("dgx-h100", "8KiB", "the same"),
    ("dgx-h100", "32KiB", "MSCCL++: NVLS packets up to 32 KiB"),
    ("dgx-h100", "64KiB", "two-shot packets: two steps"),
    ("dgx-h100", "256KiB", "two-shot packets up to 1 MiB"),
    ("dgx-h100", "512KiB", "the same"),
    ("dgx-h100", "4MiB", "NVLS, zero copy"),
    ("dgx-h100", "32MiB", "NVLS"),
    ("dgx-h100", "256MiB", "NVLS"),
    ("dgx-h100", "1GiB", "NVLS"),
    ("dgx-a100", "8KiB", "NCCL: one-shot LL"),
    ("dgx-a100", "64KiB", ""),
    ("dgx-a100", "512KiB", ""),
    ("dgx-a100", "4MiB", "NCCL: ring"),
    ("dgx-a100", "32MiB", "NCCL: ring"),
]


def row(*cells):
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def head(*columns):
    """A column whose name ends in ':' is of figures."""
    row(*(column.rstrip(":") for column in columns))
    row(*("---:" if column.endswith(":") else "---" for column in columns))


def plan(machine, hosts, collective, size):
    """What `plan` says of a row, and the plan's program."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.argv[1], "plan", machine, "-c", collective, "-s", str(size), "-o", folder + "/plan.json", "--json"]
        if hosts > 1:
            command += ["--hosts", str(hosts)]
        told = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        with open(folder + "/plan.json") as file:
            return told, json.load(file)["program"]


def truth():
    head("hosts:", "machine", "collective", "bytes:", "published µs:", "predicted µs:", "predicted ÷ published:", "engine",
         "threadblocks:")
    within = 0
    for machine, hosts, collective, size, published in ROWS:
        told, _ = plan(machine, hosts, collective, size)
        ratio = told["time_program_us"] / published
        within += 0.7 <= ratio <= 1.3
        row(hosts, machine, collective, size, f"{published:.2f}", f"{told['time_program_us']:.2f}", f"{ratio:.2f}",
            told["engine"], told["threadblocks"])
    print(f"\n{within} of {len(ROWS)} rows are within 30 %.")


def picks():
    head("machine", "size:", "auto: engine", "protocol", "instances:", "threadblocks:", "predicted µs:",
         "NCCL and MSCCL++ take")
    for machine, size, theirs in PICKS:
        told, program = plan(machine, 1, "allreduce", size)
        row(machine, size, told["engine"], program["protocol"], program["instances"], told["threadblocks"],
            f"{told['time_program_us']:.1f}", theirs)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[2:] not in ([], ["--picks"]):
        sys.exit(__doc__)
    picks() if len(sys.argv) > 2 else truth()
