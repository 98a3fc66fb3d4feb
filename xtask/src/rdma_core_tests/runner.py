"""Runs tests of rdma-core in this process, and says after each how it ended: one line of JSON.

Called with the folder of the tests, and `list`, or `run` and test names. The lines go to standard output; what the
tests themselves print goes to standard error.
"""

import json
import os
import sys
import time
import unittest
from importlib.machinery import SourceFileLoader

FOLDER, TASK, NAMES = sys.argv[1], sys.argv[2], sys.argv[3:]
sys.argv[1:] = []
sys.path.insert(0, FOLDER)
OUTPUT = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)


def say(**words):
    OUTPUT.write(json.dumps(words) + "\n")


class Result(unittest.TestResult):
    """Writes a line when a test begins and when it ends."""

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()
        self.told = False
        say(begun=test.id())

    def tell(self, test, outcome, reason=""):
        if not self.told:
            self.told = True
            seconds = time.monotonic() - getattr(self, "began", time.monotonic())
            say(test=test.id(), outcome=outcome, seconds=seconds, reason=reason)

    def addSuccess(self, test):
        self.tell(test, "pass")

    def addSkip(self, test, reason):
        self.tell(test, "skip", reason)

    def addError(self, test, err):
        self.tell(test, "error", last_line(err))

    def addFailure(self, test, err):
        self.tell(test, "fail", last_line(err))


def last_line(err):
    text = str(err[1]).strip() or err[0].__name__
    return text.splitlines()[-1][:200]


def each(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each(test)
        else:
            yield test


from args_parser import parser  # noqa: E402  (of the tests)

parser.parse_args()
tests = SourceFileLoader("tests", os.path.join(FOLDER, "__init__.py")).load_module()
loader = unittest.TestLoader()
if TASK == "list":
    for module in tests.__test_modules__:
        for test in each(loader.loadTestsFromModule(module)):
            say(test=test.id())
else:
    loader.loadTestsFromNames(NAMES).run(Result())
