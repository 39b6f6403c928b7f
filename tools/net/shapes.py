"""Shapes of networks as topologies and as network namespaces of this machine, and plans run on them, a process a rank.

Used by the check_*.py here, by tests/attack and by bench/truth_net. Needs root and Debian's iproute2.
"""
import json
import os
import random
import subprocess
import sys

NET = os.path.dirname(os.path.abspath(__file__))
PAYLOAD = 1448 / 1514  # payload's share of a frame's bytes: TCP with time stamps, MTU 1500
LATENCY_US = 9  # one way between processes of two hosts, through sockets; as `tune` measures it
OVERHEAD_US = 10  # cost of a message in the sender's system calls: 5 as `tune` measures it, and two ranks share a core here
INSIDE = "3GB/s"  # between processes of one host, through memory

def link(a, b, rate, latency_us, duplex=True):
    return (f'  <link from="{a}" to="{b}" bandwidth="{round(rate * PAYLOAD * 1e6 / 8)}B/s" '
            f'latency="{round(latency_us * 1000)}ns"{"" if duplex else " duplex=" + chr(34) + "false" + chr(34)}/>')

class Shape:
    """Arguments for hosts.sh and the same network as XML."""
    def __init__(self, name, up, hosts, ranks, nics, fabric):
        self.name, self.up, self.hosts, self.ranks = name, up, hosts, ranks
        self.nics, self.fabric = nics, fabric  # names of each host's NICs; XML lines

    def xml(self):
        lines = [f'<topology name="{self.name}" source="shaped veth pairs, {PAYLOAD:.4f} of the rate is payload">']
        for h in range(self.hosts):
            lines.append(f' <host name="h{h}">')
            lines.append(f'  <gpu count="{self.ranks}"/>')
            for nic in self.nics:
                lines.append(f'  <nic id="{nic}"/>')
                lines.append(f'  <link from="gpu:*" to="{nic}" bandwidth="{INSIDE}" latency="1us" overhead="{OVERHEAD_US}us"/>')
            if self.ranks > 1:
                lines.append('  <switch id="memory"/>')
                lines.append(f'  <link from="gpu:*" to="memory" bandwidth="{INSIDE}" latency="5us"/>')
            lines.append(' </host>')
        return "\n".join(lines + self.fabric + ["</topology>"]) + "\n"

def star(name, rates, ranks):
    n = len(rates)
    fabric = [' <switch id="sw"/>'] + [link(f"h{h}/nic:eth0", "sw", rates[h], LATENCY_US / 2) for h in range(n)]
    return Shape(name, ["star", str(n), ",".join(f"{r}mbit" for r in rates)], n, ranks, ["eth0"], fabric)

def rails(name, n, first, second, ranks):
    fabric = []
    for k, rate in enumerate((first, second)):
        fabric.append(f' <switch id="sw{k}"/>')
        fabric += [link(f"h{h}/nic:eth{k}", f"sw{k}", rate, LATENCY_US / 2) for h in range(n)]
    return Shape(name, ["rails", str(n), f"{first}mbit", f"{second}mbit"], n, ranks, ["eth0", "eth1"], fabric)

def ring(name, n, rate, ranks):
    fabric = [link(f"h{h}/nic:right", f"h{(h + 1) % n}/nic:left", rate, LATENCY_US) for h in range(n)]
    return Shape(name, ["ring", str(n), f"{rate}mbit"], n, ranks, ["right", "left"], fabric)

def leaf_spine(name, leaves, per_leaf, rate, uplink, ranks):
    fabric = [' <switch id="spine"/>']
    for l in range(leaves):
        fabric.append(f' <switch id="leaf{l}"/>')
        fabric.append(link(f"leaf{l}", "spine", uplink, 0))
        fabric += [link(f"h{l * per_leaf + k}/nic:eth0", f"leaf{l}", rate, LATENCY_US / 2) for k in range(per_leaf)]
    return Shape(name, ["leafspine", str(leaves), str(per_leaf), f"{rate}mbit", f"{uplink}mbit"],
                 leaves * per_leaf, ranks, ["eth0"], fabric)

def shapes(n, ranks):
    fast = min(1000, 8000 // n)
    return [
        star("even-star", [fast] * n, ranks),
        star("uneven-star", [fast if h % 2 == 0 else fast // 2 for h in range(n)], ranks),
        star("one-slow-link", [fast] * (n - 1) + [fast // 4], ranks),
        rails("two-rails", n, fast // 2, fast // 4, ranks),
        ring("ring-of-hosts", n, fast // 2, ranks),
        leaf_spine("slow-uplinks", 2, max(1, n // 2), fast, fast // 2, ranks),
    ]

def may_make_hosts():
    """Ends the process with status 77, and the reason, where namespaces cannot be made."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "--net", "ip", "link"], capture_output=True).returncode != 0:
        print("skipped: network namespaces cannot be made here; root and iproute2 are needed")
        sys.exit(77)

class Hosts:
    """The namespaces of one shape."""
    def __init__(self, shape):
        self.shape, self.name = shape, f"x{os.getpid() % 10000}"
    def __enter__(self):
        subprocess.run([f"{NET}/hosts.sh", "up", self.name] + self.shape.up, check=True)
        listed = subprocess.run([f"{NET}/hosts.sh", "list", self.name], check=True, capture_output=True, text=True)
        self.hosts = [line.split() for line in listed.stdout.splitlines()]
        return self
    def __exit__(self, *_):
        subprocess.run([f"{NET}/hosts.sh", "down", self.name], check=True)

    def run(self, binary, arguments, limit_s=600):
        """Starts a process for every rank; the output of rank 0."""
        size = self.shape.hosts * self.shape.ranks
        port = random.randint(20000, 29999)
        processes = []
        for rank in range(size):
            env = dict(os.environ, XCCL_RANK=str(rank), XCCL_SIZE=str(size), XCCL_TOKEN=str(port),
                       XCCL_ADDRESS=f"{self.hosts[0][1]}:{port}")
            processes.append(subprocess.Popen(
                [f"{NET}/on_host.sh", self.hosts[rank // self.shape.ranks][0], binary] + arguments,
                env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        outputs = [process.communicate(timeout=limit_s) for process in processes]
        for rank, process in enumerate(processes):
            if process.returncode != 0:
                raise RuntimeError(f"rank {rank}: exit {process.returncode}: {outputs[rank][1].strip()}")
        return outputs[0][0]

def tool(binary, arguments):
    done = subprocess.run([binary] + arguments, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout
