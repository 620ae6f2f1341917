"""Releases of clients by the numbers that they send (``MQVersion``): who is too old for what."""

from __future__ import annotations

from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.compat.rocketmq.wire.refusals import RefusedError

__all__ = ["CAN_ANSWER_SINCE", "check_knows_resets", "release_name"]

#: clients of this release and later can be told where to go on, and asked where they are
_KNOWS_RESETS_SINCE = 28  # V3_0_7_SNAPSHOT
#: ... and can be asked for what they know (V3_1_8_SNAPSHOT)
CAN_ANSWER_SINCE = 62
_FIRST = (
    "SNAPSHOT", "ALPHA1", "BETA1", "BETA2", "BETA3", "BETA4", "BETA5", "BETA6_SNAPSHOT", "BETA6",
    "BETA7_SNAPSHOT", "BETA7", "BETA8_SNAPSHOT", "BETA8", "BETA9_SNAPSHOT", "BETA9", "FINAL",
)  # fmt: skip
#: those that are too old for anything
_OLD = (
    *(f"V3_0_0_{name}" for name in _FIRST),
    *(
        f"V3_{minor}_{patch}{suffix}"
        for minor, patches in ((0, range(1, 16)), (1, range(8)))
        for patch in patches
        for suffix in ("_SNAPSHOT", "")
    ),
)


def check_knows_resets(version: int) -> None:
    """Raise RefusedError for a client too old to be told where to go on, or to say where it is."""
    if version < _KNOWS_RESETS_SINCE:
        remark = f"the client does not support this feature. version={release_name(version)}"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)


def release_name(version: int) -> str:
    """Return the name of an old release, as remarks have it."""
    return _OLD[version] if 0 <= version < len(_OLD) else str(version)
