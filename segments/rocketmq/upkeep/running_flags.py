"""What a store may do just now, as a set of bits (``RunningFlags``)."""

from __future__ import annotations

import enum


class RunningFlag(enum.IntFlag):
    """Each a reason to refuse something; the values are Java's."""

    NOT_READABLE = 1
    NOT_WRITEABLE = 2
    WRITE_LOGICS_QUEUE_ERROR = 4
    WRITE_INDEX_FILE_ERROR = 8
    DISK_FULL = 16
    FENCED = 32
    LOGIC_DISK_FULL = 64


_PUTS_REFUSED = (
    RunningFlag.NOT_WRITEABLE
    | RunningFlag.WRITE_LOGICS_QUEUE_ERROR
    | RunningFlag.WRITE_INDEX_FILE_ERROR
    | RunningFlag.DISK_FULL
    | RunningFlag.FENCED
    | RunningFlag.LOGIC_DISK_FULL
)


class RunningFlags:
    """
    The flags of one store.

    `is_readable` and `is_writeable` are kept as plain attributes: every pull or put looks at one.
    """

    __slots__ = ("flags", "is_readable", "is_writeable")

    def __init__(self) -> None:
        self.flags = RunningFlag(0)
        self._settle()

    def _settle(self) -> None:
        self.is_readable = not self.flags & RunningFlag.NOT_READABLE
        self.is_writeable = not self.flags & _PUTS_REFUSED

    def raise_flag(self, flag: RunningFlag) -> bool:
        """Set `flag`; tell whether that is news."""
        is_news = not self.flags & flag
        self.flags |= flag
        self._settle()
        return is_news

    def lower_flag(self, flag: RunningFlag) -> bool:
        """Clear `flag`; tell whether that is news."""
        is_news = bool(self.flags & flag)
        self.flags &= ~flag
        self._settle()
        return is_news

    def __str__(self) -> str:
        return "|".join(flag.name or "" for flag in RunningFlag if flag & self.flags) or "none"
