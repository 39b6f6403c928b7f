"""The annotations: strict mypy accepts the package, and the stub says what the extension module has."""

import ast
import inspect
import pathlib
import subprocess
import sys
import tempfile
import unittest

import xccl_synth as xccl
from xccl_synth import _xccl

PACKAGE = pathlib.Path(xccl.__file__).parent


class Types(unittest.TestCase):
    def test_the_stub_names_what_there_is(self):
        stub = ast.parse((PACKAGE / "_xccl.pyi").read_text())
        named = {}
        for node in stub.body:
            if isinstance(node, ast.ClassDef):
                named[node.name] = {getattr(part, "name", None) or part.target.id for part in node.body if not isinstance(part, ast.Expr)}
            elif isinstance(node, ast.FunctionDef):
                named[node.name] = None
            elif isinstance(node, ast.AnnAssign):
                named[node.target.id] = None
        there = {name for name in vars(_xccl) if not name.startswith("__")}
        self.assertEqual(set(named), there)
        for name, members in named.items():
            if members is not None:
                own = {member for member in vars(getattr(_xccl, name)) if not member.startswith("__")}
                self.assertEqual(members - {"__init__"}, own, name)

    def test_everything_public_is_documented(self):
        for name in xccl.__all__:
            value = getattr(xccl, name)
            self.assertTrue(inspect.getdoc(value), name)
            if not inspect.isclass(value) or value is xccl.Stop:
                continue
            for member, what in vars(value).items():
                if not member.startswith("_") and (callable(what) or isinstance(what, (property, staticmethod))):
                    self.assertTrue(inspect.getdoc(what), f"{name}.{member}")

    def test_mypy(self):
        try:
            import mypy  # noqa: F401
        except ImportError:
            self.skipTest("no mypy; apt install mypy")
        with tempfile.TemporaryDirectory() as cache:
            ran = subprocess.run(
                [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, str(PACKAGE)], capture_output=True, text=True
            )
        self.assertEqual(ran.returncode, 0, ran.stdout)
