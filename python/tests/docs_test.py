"""Runs every block of docs/python.md, in order and in one program, and compares what it prints with what the page shows.

A line of the page that has `...` stands for any text there. XCCL_DOCS_FILE=$PWD/docs/python.md rewrites the outputs of that page.
"""

import contextlib
import io
import os
import pathlib
import re
import tempfile
import unittest

PAGE = pathlib.Path("docs/python.md").absolute()
BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)


def fits(shown, printed):
    lines, other = shown.rstrip("\n").split("\n"), printed.rstrip("\n").split("\n")
    return len(lines) == len(other) and all(
        re.fullmatch(".*".join(re.escape(part) for part in line.rstrip().split("...")), said.rstrip()) for line, said in zip(lines, other)
    )


class Page(unittest.TestCase):
    def test_blocks_print_what_the_page_shows(self):
        text = PAGE.read_text()
        blocks = list(BLOCK.finditer(text))
        self.assertGreaterEqual(len(blocks), 10)
        self.assertEqual(text.count("```python"), len(blocks))
        names, printed = {"__name__": "page"}, []
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                for number, block in enumerate(blocks):
                    out = io.StringIO()
                    with contextlib.redirect_stdout(out):
                        exec(compile(block[1], f"{PAGE.name}, block {number + 1}", "exec"), names)
                    printed.append(out.getvalue())
            finally:
                os.chdir(before)
        if "XCCL_DOCS_FILE" in os.environ:
            self.rewrite(text, blocks, printed)
            return
        for number, (block, said) in enumerate(zip(blocks, printed)):
            shown = block[2] or ""
            self.assertTrue(fits(shown, said), f"block {number + 1} shows\n{shown}\nand prints\n{said}")

    def rewrite(self, text, blocks, printed):
        for block, said in reversed(list(zip(blocks, printed))):
            if said and not (block[2] and fits(block[2], said)):
                shown = "\n".join(line.rstrip() for line in said.rstrip("\n").split("\n"))
                text = text[: block.start()] + f"```python\n{block[1]}```\n\n```text\n{shown}\n```\n" + text[block.end() :]
        pathlib.Path(os.environ["XCCL_DOCS_FILE"]).write_text(text)
