"""The machines of the library, each with every collective at odd sizes: request N of all of them."""

import random

from draw import COLLECTIVES, LIBRARY, Request

SIZES = 40
MOST_BYTES = 1 << 30
# Machines on which planning takes minutes for some collectives, so that they are tried with --full alone.
LARGE = frozenset(
    "fat-tree-128 rail-16 rail-32 rail-64 rail-128 gb200-nvl72 gb300-nvl72 ndv6 nvl72-2 nvl72-4 nvl72-8 cloudmatrix384 dragonfly-72 "
    "tpu-v4 tpu-v5e tpu-v5p tpu7x trn2-ultraserver".split()
)


def odd_size(r):
    """Log-uniform, odd or prime, so that nothing divides it."""
    size = int(2 ** r.uniform(0, MOST_BYTES.bit_length() - 1)) | 1
    return next_prime(size) if r.random() < 0.3 else size


def next_prime(n):
    n = max(n, 3)
    while any(n % d == 0 for d in range(2, int(n**0.5) + 1)):
        n += 2
    return n


class Draw:
    """Request N, for every seed; None behind the last one. Sizes go round first, so that all machines are met early."""

    def __init__(self, full):
        self.machines = [name for name in LIBRARY if full or name not in LARGE]

    def __call__(self, seed, number):
        size, rest = divmod(number, len(self.machines) * len(COLLECTIVES))
        if size >= SIZES:
            return None
        machine, collective = divmod(rest, len(COLLECTIVES))
        r = random.Random(f"library {seed}/{number}")
        return Request(
            "library",
            self.machines[machine],
            of_collective=(("-c", COLLECTIVES[collective]),),
            size=str(odd_size(r)),
            target=self.machines[machine],
        )
