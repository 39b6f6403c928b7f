#!/usr/bin/env python3
"""Expert dispatch on 4 CPU ranks beside Open MPI: counts by MPI_Alltoall, then rows by MPI_Alltoallv.

Runs alternate. A time is the median of a run's calls, of the slowest rank each, and then of the runs, in microseconds; ratio:
Open MPI / XCCL, above 1 XCCL is faster. Open MPI's side packs rows with their headers and leaves them as they come; XCCL's also
sorts them, and counts the entries of every expert. `memory`: ranks share memory; `tcp`: each rank is a host, over loopback.

  dispatch_vs_openmpi.py XCCL_SYNTH [--over memory,tcp] [--tokens 16,256,4096] [--repeats 5]

Rows have 4 KiB, so 16 tokens are 64 KiB a rank and 4,096 are 16 MiB. Exits with 77 where mpicc or mpirun is missing.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
RANKS, ROW_BYTES, EXPERTS, TOP_K = 4, 4096, 8, 2
MACHINE = """<topology name='four-hosts'><cluster hosts='4'><gpu count='1'/><nic id='nic' count='1'/>
<link from='gpu:0' to='nic0' bandwidth='50GB/s' latency='0ns'/><fabric bandwidth='10GB/s' latency='1us'/></cluster></topology>"""

def mpirun(command, flags=()):
    yields = "1" if RANKS > (os.cpu_count() or 1) else "0"  # else waiting ranks starve the others
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return subprocess.run(["mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", yields, *flags, "-n", str(RANKS), *command],
                          env=env, stdout=subprocess.PIPE, text=True, check=True).stdout

def theirs(folder, over, tokens, calls):
    transport = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self" if over == "tcp" else "vader,self"]
    words = [tokens, ROW_BYTES, EXPERTS, TOP_K, calls]
    return float(mpirun([os.path.join(folder, "theirs")] + [str(word) for word in words], transport))

def ours(binary, plan, over, tokens, calls):
    run = f"{binary} run {plan} --tokens {tokens} --iters {calls} --json"
    if over == "tcp":
        run = f"XCCL_HOST_ID=h$OMPI_COMM_WORLD_RANK {run} --network ofi"
    rows = json.loads(mpirun(["sh", "-c", run]))
    assert not any(row["wrong"] for row in rows)
    return statistics.median(row["time_us"] for row in rows if row["call"] == "dispatch")

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--over", default="memory,tcp")
    parser.add_argument("--tokens", default="16,64,256,1024,4096")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    if not shutil.which("mpicc") or not shutil.which("mpirun"):
        print("skipped: mpirun and mpicc are not installed (Debian: openmpi-bin libopenmpi-dev)")
        sys.exit(77)
    binary = os.path.abspath(options.binary)
    print("| over | a rank | XCCL | Open MPI | ratio |\n|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["mpicc", "-O3", "-o", f"{folder}/theirs", f"{HERE}/openmpi_dispatch.c"], check=True)
        machine, plan = f"{folder}/four_hosts.xml", f"{folder}/plan.json"
        with open(machine, "w") as out:
            out.write(MACHINE)
        for tokens in [int(one) for one in options.tokens.split(",")]:
            subprocess.run([binary, "plan", machine, "-c", "dispatch", "--experts", str(EXPERTS), "--top-k", str(TOP_K), "--tokens",
                            str(tokens), "--row", f"{ROW_BYTES}B", "-o", plan], stdout=subprocess.DEVNULL, check=True)
            calls = 100 if tokens < 256 else 20 if tokens < 2048 else 5
            for over in options.over.split(","):
                mine, other = [], []
                for _ in range(options.repeats):
                    mine.append(ours(binary, plan, over, tokens, calls))
                    other.append(theirs(folder, over, tokens, calls))
                a, b = statistics.median(mine), statistics.median(other)
                print(f"| {over} | {tokens * ROW_BYTES >> 10} KiB | {a:.0f} | {b:.0f} | {b / a:.2f} |", flush=True)

if __name__ == "__main__":
    main()
