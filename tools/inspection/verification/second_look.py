"""
Findings that last: what a running broker was just writing is none.

A directory is read over some time, while a broker appends, cleans and removes. What looks wrong
then may be half of a change, so damage counts only if it is seen again in the same place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from logstore.tools.inspection.verification.finding import Finding

#: how often is looked at most: what is damaged costs as many readings
LOOKS_MAX = 3


def lasting_findings(
    first: Iterable[Finding] | None, look_again: Callable[[], Iterable[Finding] | None]
) -> list[Finding] | None:
    """
    Return what the last look found, of damage what all found; None where all were in vain.

    A look that returns None was in vain: files went while they were read.
    """
    found = None if first is None else list(first)
    look_count = 1
    while look_count < LOOKS_MAX and (found is None or any(one.is_damage for one in found)):
        look_count += 1
        later = look_again()
        if later is not None:
            found = list(later) if found is None else _kept(found, list(later))
    return found


def _kept(before: list[Finding], after: list[Finding]) -> list[Finding]:
    """Return `after` without damage that was not there before, in whatever words."""
    places = {_place(one) for one in before if one.is_damage}
    return [one for one in after if not one.is_damage or _place(one) in places]


def _place(finding: Finding) -> tuple[str, str, int | None]:
    return finding.kind, finding.file, finding.position
