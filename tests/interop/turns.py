"""Which test process runs which interop test: the longest begin, and what shares brokers stays."""

from __future__ import annotations

from pathlib import PurePath

from xdist.scheduler import LoadScopeScheduling

#: Files whose tests wait longest, the longest first: what begins late ends last, and alone.
LONGEST: tuple[str, ...] = ()
#: Files whose tests have brokers of their own, or no more than those of the test process.
APART: frozenset[str] = frozenset()


def rank(file: PurePath) -> int:
    """Return at which turn the tests of a file begin."""
    return LONGEST.index(file.name) if file.name in LONGEST else len(LONGEST)


class Turns(LoadScopeScheduling):
    """Hands out whole files, in the order of collection; those of :data:`APART` test by test."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return nodeid if PurePath(file).name in APART else file
