"""Runs files of unit tests and reports each test to Bazel as a case: run.py FILE..."""

import importlib.util
import os
import pathlib
import sys
import unittest
from xml.sax.saxutils import quoteattr


class Result(unittest.TextTestResult):
    def __init__(self, *args):
        super().__init__(*args)
        self.names = []

    def startTest(self, test):
        self.names.append(test.id())
        super().startTest(test)


def report(result, path):
    """As GoogleTest writes it."""
    # A part of a test that fails counts as the whole.
    failed = {getattr(test, "test_case", test).id(): text for test, text in result.failures + result.errors}
    lines = [f'<testsuites tests="{len(result.names)}" failures="{len(failed)}" name="AllTests">']
    lines.append(f'<testsuite name="python" tests="{len(result.names)}" failures="{len(failed)}">')
    for name in result.names:
        failure = f"<failure message={quoteattr(failed[name])}/>" if name in failed else ""
        lines.append(f'<testcase name={quoteattr(name)} classname="python">{failure}</testcase>')
    pathlib.Path(path).write_text("\n".join(lines + ["</testsuite>", "</testsuites>"]) + "\n")


def main(files):
    suite = unittest.TestSuite()
    for file in files:
        path = pathlib.Path(file).absolute()
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        suite.addTests(unittest.defaultTestLoader.loadTestsFromModule(module))
    result = unittest.TextTestRunner(resultclass=Result, verbosity=1).run(suite)
    if "XML_OUTPUT_FILE" in os.environ:
        report(result, os.environ["XML_OUTPUT_FILE"])
    if not result.names:
        print(f"{', '.join(files)}: no tests", file=sys.stderr)
        return 1
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
