"""
How a whole run of the fast tests is shared out: those that compile loops go to one process.

In a fresh checkout nothing is compiled yet, and two processes that begin at once would both compile
the same loops, for a minute and a half together. All other tests are shared out file by file, so
that what a file sets up is set up once. Where there are cores to spare, compiling twice costs
nothing.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

#: where tests compile loops: nearly all of the compiling, and well under half of the time
COMPILING = (
    "tests/compat/bridge/test_compiled_loops.py",
    "tests/compat/kafka/test_cleaner_process.py",
    "tests/compat/spark/",
    "tests/segments/kafka/columns/",
    "tests/segments/kafka/compaction/",
    "tests/segments/rocketmq/columns/",
    "tests/tools/rocketmq/test_verify_in_pieces.py",
)

#: With more processes than these, all that compiles would be the last to end.
PROCESSES_MAX = 3


def scope_of(test: str) -> str:
    """Return with what a test stays: with all that compiles, else with its file."""
    return "compiling" if test.startswith(COMPILING) else test.partition("::")[0]


class CompileOnce(LoadScopeScheduling):  # type: ignore[misc] # xdist carries no types
    """As ``--dist loadfile``, but for files that compile; of the scopes the largest begin."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)
