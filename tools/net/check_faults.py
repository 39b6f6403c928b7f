#!/usr/bin/env python3
"""Hurts runs of `xccl-synth` on three hosts of two ranks: every survivor ends in time and names the culprit.

Ranks are killed at random moments, from the start of the processes on; a process is stopped; a link is cut; a rank has
another token or another plan. After each, no process, listening socket or shared memory is left. Hosts are network
namespaces (hosts.sh). Prints a line for each fault; the exit status is 1 if anything failed, 77 where namespaces cannot be
made.

  check_faults.py XCCL_SYNTH [--kills N] [--seed N] [--verbose]
"""
import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

from shapes import NET, Hosts, may_make_hosts, star, tool

HOSTS, RANKS = 3, 2  # a host's
SIZE = HOSTS * RANKS
TIMEOUT_S = 5  # --timeout
LIMIT_S = 20  # of the survivors: a silent peer is given up after 10 s, and a loaded machine takes its time

class Group:
    """The processes of one run."""
    def __init__(self, net, binary, plan, port, strangers=None):
        self.net, self.processes, self.began = net, [], time.monotonic()
        for rank in range(SIZE):
            env = dict(os.environ, XCCL_RANK=str(rank), XCCL_SIZE=str(SIZE), XCCL_TOKEN="faults",
                       XCCL_ADDRESS=f"{net.hosts[0][1]}:{port}")
            env.update((strangers or {}).get(rank, {}))
            arguments = [env.pop("PLAN", plan), "--sizes", "256KiB", "--iters", "1000000"]
            self.processes.append(subprocess.Popen(
                [f"{NET}/on_host.sh", net.hosts[rank // RANKS][0], binary, "run"] + arguments +
                ["--network", "ofi", "--timeout", f"{TIMEOUT_S}s"],
                env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))

    def ends(self, but=()):
        """What the ranks say, but those named; None for who does not end in time."""
        until, said = time.monotonic() + LIMIT_S, {}
        for rank, process in enumerate(self.processes):
            if rank in but:
                continue
            try:
                said[rank] = process.communicate(timeout=max(0.1, until - time.monotonic()))[1].strip()
            except subprocess.TimeoutExpired:
                said[rank] = None
        for process in self.processes:
            process.kill()
            process.wait()
        return said

def left_behind(net, shared_memory):
    """What a run has left, as text; empty: nothing."""
    found = [name for name in os.listdir("/dev/shm") if name not in shared_memory and "xccl" in name]
    for host in net.hosts:
        pids = subprocess.run(["ip", "netns", "pids", host[0]], capture_output=True, text=True, check=True).stdout.split()
        found += [f"process {pid} on {host[0]}" for pid in pids]
        tables = subprocess.run(["ip", "netns", "exec", host[0], "cat", "/proc/net/tcp", "/proc/net/tcp6", "/proc/net/unix"],
                                capture_output=True, text=True).stdout
        for line in tables.splitlines():
            fields = line.split()
            if len(fields) > 3 and fields[3] == "0A" or "@xccl" in line:
                found.append(f"socket on {host[0]}: {line.strip()}")
    return "; ".join(found)

def complaints(said, expected):
    """Of the survivors that did not end, or do not say what is expected first of all."""
    return [f"rank {rank}: {'did not end' if text is None else text}" for rank, text in said.items()
            if text is None or not re.search(expected(rank) if callable(expected) else expected, text)]

RUNNING_S = 2  # after so long ranks have met and run

def kill_one(make, chance):
    """A process of a group is killed, at any moment from before it joins on."""
    group, victim = make(), chance.randrange(SIZE)
    time.sleep(chance.choice([chance.uniform(0, 0.2), chance.uniform(0.2, 1.5)]))  # while they meet, or later
    process = group.processes[victim]
    process.kill()
    # The message of a rank that had not come yet is that it did not come; rank 0's process serves the rendezvous too.
    return group.ends([victim]), (rf"rank {victim}\b(?!\d)[^;]*(process has ended|did not come|cannot be reached)"
                                  rf"|served it \(host [^)]*, pid {process.pid}\)|nobody serves it.*rank 0")

def stop_one(make, _):
    group, victim = make(), SIZE - 1
    time.sleep(RUNNING_S)
    group.processes[victim].send_signal(signal.SIGSTOP)
    return group.ends([victim]), rf"rank {victim}: "

def cut_link(make, _):
    group, host = make(), HOSTS - 1
    # At the switch: routes of the host stay, as when a cable is pulled.
    port = ["ip", "-n", f"{group.net.name}-sw0", "link", "set", f"p{host}"]
    time.sleep(RUNNING_S)
    subprocess.run(port + ["down"], check=True)
    said = group.ends()
    subprocess.run(port + ["up"], check=True)
    cut = range(host * RANKS, SIZE)
    # Those behind the cut lose the others.
    return said, lambda rank: rf"rank [0-{host * RANKS - 1}]: " if rank in cut else rf"rank [{cut[0]}-{cut[-1]}]: "

def wrong_token(make, _):
    stranger = SIZE - 1
    group = make({stranger: {"XCCL_TOKEN": "another"}})
    return group.ends(), rf"rank {stranger} \([^)]*\)( at [0-9.:]*)? was refused: it has the token of another job"

def another_plan(make, _, plan):
    group = make({SIZE - 1: {"PLAN": plan}})
    return group.ends(), rf"rank {SIZE - 1} \(host [^)]*\): another plan than rank 0"

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="what the survivors say")
    options = parser.parse_args()
    may_make_hosts()
    binary, shape, chance = os.path.abspath(options.binary), star("check", [0] * HOSTS, RANKS), random.Random(options.seed)
    shared_memory, port, failed = set(os.listdir("/dev/shm")), [15000], 0
    with tempfile.TemporaryDirectory() as folder, Hosts(shape) as net:
        topology, plan, other = (os.path.join(folder, name) for name in ("star.xml", "plan.json", "other.json"))
        with open(topology, "w") as file:
            file.write(shape.xml().replace('bandwidth="0B/s"', 'bandwidth="1GB/s"'))
        tool(binary, ["plan", topology, "-c", "allreduce", "-s", "64KiB", "-o", plan])
        tool(binary, ["plan", topology, "-c", "allreduce", "-s", "64KiB", "--engine", "tree", "-o", other])
        def make(strangers=None):
            port[0] += 1
            return Group(net, binary, plan, port[0], strangers)
        faults = [("rank killed", kill_one)] * options.kills + [
            ("process stopped", stop_one), ("link cut", cut_link), ("wrong token", wrong_token),
            ("another plan", lambda make, chance: another_plan(make, chance, other))]
        times = {}
        for name, fault in faults:
            began = time.monotonic()
            said, expected = fault(make, chance)
            wrong = complaints(said, expected)
            wrong += [f"left behind: {left}"] if (left := left_behind(net, shared_memory)) else []
            count, slowest, bad = times.get(name, (0, 0, 0))
            times[name] = (count + 1, max(slowest, time.monotonic() - began), bad + bool(wrong))
            if options.verbose:
                print(f"{name}: {sorted({str(text) for text in said.values()})}", flush=True)
            for line in wrong:
                print(f"{name}: {line}", flush=True)
        for name, (count, slowest, bad) in times.items():
            failed += bad
            print(f"{name}: {count} times, {bad} failed, the slowest took {slowest:.1f} s", flush=True)
    sys.exit(1 if failed else 0)

if __name__ == "__main__":
    main()
