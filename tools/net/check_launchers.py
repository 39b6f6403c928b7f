#!/usr/bin/env python3
"""Starts `xccl-synth run` by every launcher, on four hosts of two ranks and on one host, and checks every element.

Hosts are network namespaces (hosts.sh); no resolver knows their names. Prints a line for each launcher, `skipped` with
its reason where one is missing; the exit status is 1 if anything failed, 77 where namespaces cannot be made.

  check_launchers.py XCCL_SYNTH
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

from shapes import NET, Hosts, may_make_hosts, star, tool

HOSTS, RANKS = 4, 2  # a host's
SIZE = HOSTS * RANKS
LIMIT_S = 60

class Case:
    """A launcher's command, or for each rank one; `needs` are its programs."""
    def __init__(self, name, needs, command, each_rank=None, env=None):
        self.name, self.needs, self.command, self.each_rank, self.env = name, needs, command, each_rank, env or {}

def missing(programs):
    for program, package in programs:
        if shutil.which(program) is None:
            return f"no {program}; hint: apt-get install {package}"
    return None

def run(case, arguments):
    """The rows of rank 0, which alone prints any, and the errors of all."""
    env = dict(os.environ, **case.env)
    commands = [(case.command + arguments, env)]
    if case.each_rank:
        commands = []
        for rank in range(SIZE):
            prefix, flags, variables = case.each_rank(rank)
            commands.append((prefix + arguments + flags, dict(env, **variables)))
    processes = [subprocess.Popen(c, env=e, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True) for c, e in commands]
    output, errors, status = "", "", 0
    for process in processes:
        try:
            out, err = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            err += f"no end within {LIMIT_S} s"
        output, errors, status = output + out, errors + err, status or process.returncode
    return output, errors, status

def check(case, arguments):
    """None where all is well; else what is wrong."""
    output, errors, status = run(case, arguments)
    if status != 0:
        return f"exit {status}: {errors.strip()}"
    try:
        rows = json.loads(output)
    except ValueError:
        return f"no single table: {output.strip()[:300]}"
    wrong = sum(row["wrong"] for row in rows)
    return f"{wrong} wrong" if wrong or not rows else None

def cases_on_hosts(net, slurm_conf, folder):
    first, address = net.hosts[0][0], net.hosts[0][1]
    on_first = [f"{NET}/on_host.sh", first]
    hostfile = os.path.join(folder, "hostfile")
    with open(hostfile, "w") as file:
        file.writelines(f"{host[0]} slots={RANKS}\n" for host in net.hosts)
    inside = lambda rank: [f"{NET}/on_host.sh", net.hosts[rank // RANKS][0]]
    place = lambda rank, port: {"LOCAL_RANK": str(rank % RANKS), "LOCAL_WORLD_SIZE": str(RANKS), "RANK": str(rank),
                                "WORLD_SIZE": str(SIZE), "MASTER_ADDR": address, "MASTER_PORT": str(port),
                                "TORCHELASTIC_RUN_ID": "check", "TORCHELASTIC_RESTART_COUNT": "0"}
    mpirun = on_first + ["mpirun", "--hostfile", hostfile, "-np", str(SIZE), "--mca", "plm_rsh_agent", f"{NET}/rsh.sh"]
    # No resolver knows the first host's name; Hydra tells it to the other hosts.
    hydra = on_first + ["mpiexec.hydra", "-iface", "eth0", "-launcher", "ssh", "-launcher-exec", f"{NET}/rsh.sh", "-hosts",
                        ",".join(host[0] for host in net.hosts), "-n", str(SIZE), "-ppn", str(RANKS)]
    srun = on_first + ["srun", "-N", str(HOSTS), "--ntasks-per-node", str(RANKS)]
    conf = {"SLURM_CONF": slurm_conf}
    return [
        Case("mpirun of Open MPI", OPEN_MPI, mpirun, env=AS_ROOT),
        Case("mpiexec of MPICH", HYDRA, hydra),
        Case("srun", SLURM, srun, env=conf),
        Case("srun --mpi=pmi2", SLURM, srun + ["--mpi=pmi2"], env=conf),
        Case("srun, XCCL_ADDRESS", SLURM, srun, env=dict(conf, XCCL_ADDRESS=address)),
        Case("torchrun's variables", [], [], lambda rank: (inside(rank), [], place(rank, 29500))),
        Case("XCCL_* variables", [], [], lambda rank: (inside(rank), [], {
            "XCCL_RANK": str(rank), "XCCL_SIZE": str(SIZE), "XCCL_ADDRESS": f"{address}:4000", "XCCL_TOKEN": "check"})),
        Case("flags", [], [], lambda rank: (inside(rank), [
            "--rank", str(rank), "--ranks", str(SIZE), "--address", f"{address}:4001", "--token", "check"], {})),
    ]

def cases_on_one_host(net, slurm_conf):
    first = [f"{NET}/on_host.sh", net.hosts[0][0]]
    return [
        Case("mpirun of Open MPI, one host", OPEN_MPI, ["mpirun", "--oversubscribe", "-np", str(SIZE)], env=AS_ROOT),
        Case("mpiexec of MPICH, one host", HYDRA, ["mpiexec.hydra", "-n", str(SIZE)]),
        Case("srun, one host", SLURM, first + ["srun", "-N", "1", "-n", str(SIZE)], env={"SLURM_CONF": slurm_conf}),
        Case("flags, one host", [], [], lambda rank: ([], ["--rank", str(rank), "--ranks", str(SIZE), "--token", "one"], {})),
    ]

OPEN_MPI, HYDRA = [("mpirun", "openmpi-bin")], [("mpiexec.hydra", "mpich")]
SLURM = [("srun", "slurm-wlm"), ("slurmctld", "slurm-wlm"), ("slurmd", "slurm-wlm"), ("munged", "munge")]
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    may_make_hosts()
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    binary = os.path.abspath(sys.argv[1])
    shape = star("check", [0] * HOSTS, RANKS)
    failed = 0
    with tempfile.TemporaryDirectory() as folder, Hosts(shape) as net:
        os.chmod(folder, 0o755)
        topology, plan, slurm = (os.path.join(folder, name) for name in ("star.xml", "plan.json", "slurm"))
        with open(topology, "w") as file:
            file.write(shape.xml().replace('bandwidth="0B/s"', 'bandwidth="1GB/s"'))
        tool(binary, ["plan", topology, "-c", "allreduce", "-s", "64KiB", "-o", plan])
        arguments = [binary, "run", plan, "--sizes", "1KiB,1MiB", "--iters", "2", "--json", "--network", "ofi", "--timeout", "20s"]
        has_slurm = missing(SLURM) is None
        if has_slurm:
            subprocess.run([f"{NET}/slurm.sh", "up", slurm, str(SIZE)] + [f"{h[0]}:{h[1]}" for h in net.hosts], check=True)
        try:
            for case in cases_on_hosts(net, f"{slurm}/slurm.conf", folder) + cases_on_one_host(net, f"{slurm}/slurm.conf"):
                lacks = missing(case.needs)
                said = f"skipped: {lacks}" if lacks else check(case, arguments)
                failed += said is not None and not lacks
                print(f"{case.name}: {said or 'ok'}", flush=True)
        finally:
            if has_slurm:
                subprocess.run([f"{NET}/slurm.sh", "down", slurm], check=True)
    sys.exit(1 if failed else 0)

if __name__ == "__main__":
    main()
