#!/usr/bin/env python3
"""Runs jobs by `xccl-synth exec` on four hosts of two ranks, with warm and cold caches, and kills some of them at random.

Hosts are network namespaces (hosts.sh), which share the file system; half of the jobs have a cache a host. Jobs are started
by mpirun, or a process for each rank with the variables that srun sets. A job sums numbers by the C library and ends with a
random exit code, which must be the job's; a job of which a rank is killed only ends. After a kill the next job must find or
make a whole book, and leave nothing else in the cache. Then jobs measure with caches a host (--measure). The exit status is 1 if anything failed, 77 where namespaces cannot be
made.

  check_exec.py XCCL_SYNTH [--runs N] [--seed N]      (needs //examples:allreduce, built beside it)
"""
import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from shapes import NET, Hosts, may_make_hosts, star

HOSTS, RANKS = 4, 2  # a host's
SIZE = HOSTS * RANKS
LIMIT_S = 120
CODES = [0, 0, 1, 37]
MEASURING = ["--measure", "--time-limit", "100s", "--collectives", "allreduce", "--sizes", "64KiB"]
PLANNING = ["--collectives", "allreduce,allgather", "--sizes", "64KiB,1MiB"]

class Job:
    """One job: its processes, which run until they are awaited."""
    def __init__(self, net, folder, number, launcher, own_caches, command, flags=PLANNING):
        cache = f"{folder}/own-$(hostname)" if own_caches else f"{folder}/shared"
        # Each rank tells its own process, for kills.
        script = f'echo $$ > {folder}/pids/$$; export XDG_CACHE_HOME={cache}; exec "$@"'
        words = ["sh", "-c", script, "sh", net.binary, "exec"] + flags + ["--"] + command
        self.launcher, port = launcher, 20000 + number % 9000
        env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", XCCL_TOKEN=f"job{number}",
                   XCCL_ADDRESS=f"{net.hosts[0][1]}:{port}")
        if launcher == "mpirun":
            hostfile = f"{folder}/hostfile"
            with open(hostfile, "w") as file:
                file.writelines(f"{host[0]} slots={RANKS}\n" for host in net.hosts)
            forward = [word for name in ("XCCL_TOKEN", "XCCL_ADDRESS") for word in ("-x", name)]
            commands = [([f"{NET}/on_host.sh", net.hosts[0][0], "mpirun", "--hostfile", hostfile, "-np", str(SIZE), "--mca",
                          "plm_rsh_agent", f"{NET}/rsh.sh"] + forward + words, env)]
        else:
            commands = [([f"{NET}/on_host.sh", net.hosts[rank // RANKS][0]] + words, dict(
                env, SLURM_JOB_ID=str(number), SLURM_STEP_ID="0", SLURM_PROCID=str(rank), SLURM_LOCALID=str(rank % RANKS),
                SLURM_NTASKS=str(SIZE), SLURM_STEP_NUM_NODES=str(HOSTS), SLURM_STEP_TASKS_PER_NODE=f"{RANKS}(x{HOSTS})"))
                for rank in range(SIZE)]
        self.processes = [subprocess.Popen(c, env=e, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE, text=True) for c, e in commands]

    def end(self):
        """The exit codes, and all that was printed."""
        output = ""
        for process in self.processes:
            try:
                out, err = process.communicate(timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                out, err = process.communicate()
                err += f"no end within {LIMIT_S} s\n"
            output += out + err
        return [process.returncode for process in self.processes], output

def caches(folder):
    return [entry.path + "/xccl" for entry in os.scandir(folder) if entry.name == "shared" or entry.name.startswith("own-")]

def left_over(folder):
    return [f"{cache}/{name}" for cache in caches(folder) if os.path.isdir(cache) for name in os.listdir(cache) if ".tmp-" in name]

def forget(folder):
    for cache in caches(folder):
        shutil.rmtree(os.path.dirname(cache), ignore_errors=True)

def kill_one(folder, random_, seconds):
    """Kills the process of one rank, which is chance, after a random time; its planner ends with it."""
    time.sleep(random_.uniform(0, seconds))
    pids = [name for name in os.listdir(f"{folder}/pids")]
    for pid in random_.sample(pids, len(pids)):
        try:
            os.kill(int(pid), signal.SIGKILL)
            return True
        except ProcessLookupError:
            continue
    return False

def clear_pids(folder):
    shutil.rmtree(f"{folder}/pids", ignore_errors=True)
    os.mkdir(f"{folder}/pids")

def wrong(codes, output, code, launcher):
    """None, or what is wrong with a job that was not killed."""
    if any(c != code for c in codes):
        return f"exit codes {codes}; expected {code}"
    sums = output.count(f"{SIZE} ranks, 1 here, 1000000 elements, 0 wrong")
    if sums != SIZE and not (launcher == "mpirun" and code != 0):  # which ends the other ranks
        return f"{sums} ranks have right sums; expected {SIZE}"
    if "without a plan book" in output:
        return "a rank has no book"
    return None

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    may_make_hosts()
    binary = os.path.abspath(options.binary)
    allreduce = os.path.join(os.path.dirname(binary), "../examples/allreduce")
    launchers = ["srun's variables"] + (["mpirun"] if shutil.which("mpirun") else [])
    if len(launchers) == 1:
        print("mpirun: skipped: not installed; hint: apt-get install openmpi-bin")
    random_ = random.Random(options.seed)
    failed, counts, warm_s = 0, {"cold": 0, "warm": 0, "killed": 0}, []
    with tempfile.TemporaryDirectory() as folder, Hosts(star("exec", [0] * HOSTS, RANKS)) as net:
        os.chmod(folder, 0o755)
        net.binary = binary
        for run in range(options.runs):
            launcher, own = random_.choice(launchers), random_.random() < 0.5
            if random_.random() < 0.5:
                forget(folder)
            clear_pids(folder)
            if random_.random() < 0.5:
                job = Job(net, folder, 2 * run, launcher, own, ["sh", "-c", "sleep 0.2; exit 37"])
                killed = kill_one(folder, random_, 3)
                codes, output = job.end()
                counts["killed"] += killed
                bad = [c for c in codes if c not in (37, -signal.SIGKILL)] if launcher != "mpirun" else []
                if bad or "no end within" in output:
                    failed += 1
                    print(f"run {run}, {launcher}, killed: exit codes {codes}\n{output}", flush=True)
                clear_pids(folder)
            code = random_.choice(CODES)
            began = time.monotonic()
            job = Job(net, folder, 2 * run + 1, launcher, own, ["sh", "-c", f'"{allreduce}" && exit {code}'])
            codes, output = job.end()
            cold = "making the plan book" in output
            counts["cold" if cold else "warm"] += 1
            if not cold:
                warm_s.append(time.monotonic() - began)
            said = wrong(codes, output, code, launcher)
            # Only who makes a book removes what a killed one has left.
            if said is None and cold and left_over(folder) and not own:
                said = f"left in the cache: {left_over(folder)}"
            if said:
                failed += 1
                print(f"run {run}, {launcher}, {'own caches' if own else 'one cache'}: {said}\n{output}", flush=True)
        for launcher in launchers:  # all ranks measure, and then find what they have measured
            forget(folder)
            for expected in (HOSTS, 0):
                options.runs += 1
                clear_pids(folder)
                job = Job(net, folder, 2 * options.runs, launcher, True, ["sh", "-c", f'"{allreduce}"'], MEASURING)
                codes, output = job.end()
                said = wrong(codes, output, 0, launcher)
                measured = output.count("measuring the job's machine")
                if said or measured != expected:
                    failed += 1
                    print(f"{launcher}, --measure: {said}; {measured} hosts measure, expected {expected}\n{output}", flush=True)
        left = [host[0] for host in net.hosts
                if subprocess.run(["ip", "netns", "pids", host[0]], capture_output=True, text=True).stdout.strip()]
        if left:
            failed += 1
            print(f"processes left on {', '.join(left)}")
    print(f"{options.runs} jobs on {HOSTS} hosts of {RANKS} ranks: {counts['cold']} with cold and {counts['warm']} with warm caches "
          f"(median {sorted(warm_s)[len(warm_s) // 2] if warm_s else 0:.1f} s), after {counts['killed']} kills; {failed} failed")
    sys.exit(1 if failed else 0)

if __name__ == "__main__":
    main()
