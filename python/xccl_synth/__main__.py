"""``python -m xccl_synth``: the command line, ``xccl-synth``, which is in the wheel. It needs no other package."""

from __future__ import annotations

import os
import pathlib
import sys
from typing import NoReturn


def main() -> NoReturn:
    program = pathlib.Path(__file__).parent / "bin" / "xccl-synth"
    try:
        os.execv(program, ["xccl-synth", *sys.argv[1:]])
    except OSError as wrong:
        sys.exit(f"xccl_synth: {program}: {wrong.strerror}; hint: wheels that tools/wheel makes have the program")


if __name__ == "__main__":
    main()
