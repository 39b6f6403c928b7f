#!/usr/bin/env python3
"""XCCL beside Open MPI and MPICH over TCP between hosts that are network namespaces (tools/net/hosts.sh).

Each library runs its best algorithm at each size: all of Open MPI's coll_tuned algorithms are timed and the fastest is
taken. Runs alternate, and a time is the median over the repeats: where ranks share cores, equal runs differ by half, and
the fastest of six algorithms would be the luckiest. XCCL runs the plan that `plan` makes for the size. Prints times in
microseconds and the ratio (above 1: XCCL is faster).

  vs_mpi.py XCCL_SYNTH [--shapes even-star] [--hosts N] [--collectives L] [--sizes L] [--repeats N]

Needs root, mpicc and mpirun of Open MPI; MPICH is timed where mpiexec.hydra and mpicc.mpich are there.
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
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools", "net"))
from shapes import NET, Hosts, may_make_hosts, shapes, tool

ALGORITHMS = {"allreduce": range(1, 7), "allgather": range(1, 6), "alltoall": range(1, 5)}

def sizes_of(text):
    units = {"KiB": 1 << 10, "MiB": 1 << 20}
    return [int(one[:-3]) * units[one[-3:]] for one in text.split(",")]

def times_of(output, sizes):
    found = dict(line.split() for line in output.splitlines() if len(line.split()) == 2)
    return {size: float(found[str(size)]) for size in sizes if str(size) in found}

def note(seen, times, what):
    """Adds times by size to what was seen of an algorithm."""
    for size, time in times.items():
        seen.setdefault(size, {}).setdefault(what, []).append(time)

def best(seen, size):
    """The algorithm with the least median, and that."""
    return min(((statistics.median(times), what) for what, times in seen.get(size, {}).items()), default=(float("nan"), ""))

def open_mpi(hosts, folder, collective, algorithm, sizes):
    file = os.path.join(folder, "hosts")
    with open(file, "w") as out:
        out.write("".join(f"{host[0]} slots=1\n" for host in hosts.hosts))
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    done = subprocess.run(
        [f"{NET}/on_host.sh", hosts.hosts[0][0], "mpirun.openmpi", "--hostfile", file, "-np", str(len(hosts.hosts)),
         "--mca", "plm_rsh_agent", f"{NET}/rsh.sh", "--mca", "pml", "ob1", "--mca", "btl", "tcp,self",
         "--mca", "mpi_yield_when_idle", "1", "--mca", "coll_tuned_use_dynamic_rules", "1",
         "--mca", f"coll_tuned_{collective}_algorithm", str(algorithm),
         os.path.join(folder, "openmpi"), collective] + [str(size) for size in sizes],
        env=env, capture_output=True, text=True, timeout=300)
    return times_of(done.stdout, sizes)

def mpich(options, hosts, folder, collective, sizes):
    try:
        done = subprocess.run(
            [f"{NET}/on_host.sh", hosts.hosts[0][0], "mpiexec.hydra", "-launcher", "ssh", "-launcher-exec",
             f"{NET}/rsh.sh", "-hosts", ",".join(host[0] for host in hosts.hosts), "-n", str(len(hosts.hosts)), "-ppn", "1",
             "-genv", "UCX_TLS", "tcp,self", os.path.join(folder, "mpich"), collective] + [str(size) for size in sizes],
            capture_output=True, text=True, timeout=options.mpich_seconds)
    except subprocess.TimeoutExpired:  # its ranks poll without yielding: it crawls where they share cores
        return {}
    return times_of(done.stdout, sizes)

def ours(options, hosts, folder, topology, collective, size):
    plan = os.path.join(folder, f"{collective}-{size}.json")
    if not os.path.exists(plan):
        tool(options.binary, ["plan", topology, "-c", collective, "-s", str(size), "-o", plan])
    iterations = 1000 if size < 100000 else 50 if size < 2000000 else 3
    rows = json.loads(hosts.run(options.binary, ["run", plan, "--sizes", str(size), "--iters", str(iterations), "--warmup",
                                                 str((iterations + 9) // 10), "--json", "--network", "ofi"]))
    assert not any(row["wrong"] for row in rows)
    return rows[0]["slowest_us"]

def measure(options, shape, sizes):
    """Prints the rows of one network."""
    with tempfile.TemporaryDirectory() as folder, Hosts(shape) as hosts:
        topology = os.path.join(folder, "topology.xml")
        with open(topology, "w") as out:
            out.write(shape.xml())
        for name in options.peers:
            subprocess.run([f"mpicc.{name}", "-O2", "-o", os.path.join(folder, name), os.path.join(HERE, "mpi_times.c")], check=True)
        for collective in options.collectives.split(","):
            mine, theirs, third = {}, {}, {}
            for _ in range(options.repeats):
                for size in sizes:
                    note(mine, {size: ours(options, hosts, folder, topology, collective, size)}, "")
                for algorithm in ALGORITHMS[collective]:
                    note(theirs, open_mpi(hosts, folder, collective, algorithm, sizes), algorithm)
                if "mpich" in options.peers:
                    note(third, mpich(options, hosts, folder, collective, sizes), "")
            for size in sizes:
                a, b, c = best(mine, size)[0], best(theirs, size), best(third, size)[0]
                cells = [shape.name, collective, size, f"{a:.1f}", f"{b[0]:.1f}", b[1], f"{b[0] / a:.2f}"]
                cells += [f"{c:.1f}", f"{c / a:.2f}"] if "mpich" in options.peers else []
                print("|", " | ".join(map(str, cells)), "|", flush=True)

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--shapes", default="even-star")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--collectives", default="allreduce,allgather,alltoall")
    parser.add_argument("--sizes", default="1KiB,4KiB,16KiB,64KiB,256KiB,1MiB,4MiB,16MiB,64MiB")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--mpich-seconds", type=int, default=60, help="for a collective; 0: without MPICH")
    options = parser.parse_args()
    options.binary = os.path.abspath(options.binary)
    options.peers = [name for name in ("openmpi", "mpich")
                     if shutil.which(f"mpicc.{name}") and (name == "openmpi" or options.mpich_seconds > 0)]
    may_make_hosts()
    if "openmpi" not in options.peers:
        print("skipped: mpicc.openmpi is not installed (Debian: openmpi-bin libopenmpi-dev)")
        sys.exit(77)
    head = ["network", "collective", "bytes", "XCCL", "Open MPI", "its algorithm", "ratio"]
    head += ["MPICH", "ratio"] if "mpich" in options.peers else []
    print("|", " | ".join(head), "|")
    print("|---|---|" + "---:|" * (len(head) - 2))
    for shape in shapes(options.hosts, 1):
        if shape.name in options.shapes.split(","):
            measure(options, shape, sizes_of(options.sizes))

if __name__ == "__main__":
    main()
