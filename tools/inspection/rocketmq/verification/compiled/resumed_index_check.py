"""The check of an index of which others have looked at parts: those it passes over unread."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from logstore.segments.rocketmq.messages.dispatch_request import DispatchRequest
from logstore.tools.inspection.rocketmq.verification.compiled.bulk_index_check import BulkIndexCheck
from logstore.tools.inspection.rocketmq.verification.compiled.index_rows import IndexRows
from logstore.tools.inspection.verification.finding import Finding

if TYPE_CHECKING:
    from logstore.segments.compiled.loops import Int64s
    from logstore.segments.rocketmq.columns.record_scan import IndexEntries
    from logstore.tools.inspection.rocketmq.verification.followed_log import FollowedLog
    from logstore.tools.inspection.rocketmq.verification.log_range import IndexSpan

_STEP_COUNT = 50_000


class ResumedIndexCheck(BulkIndexCheck):
    """
    As :class:`BulkIndexCheck`, with the same findings.

    Chains, slots and headers are not looked at while entries are read: :meth:`file_findings` does
    that, anywhere, and :meth:`add` takes what it found.
    """

    #: the row with which the next block begins
    _block_row = 0
    #: whether the entries of the next two messages were looked at, as the checks of messages want
    _is_settled = True

    @cached_property
    def rows(self) -> IndexRows:
        """The entries, to be read at any row."""
        return IndexRows(tuple(self.paths), tuple(self.headers), self.sizes)

    def _read_blocks(self) -> Iterator[Int64s]:
        while self._block_row < self.rows.count:
            block = self.rows.read(self.store.fs, self._block_row, _STEP_COUNT)
            self._block_row += len(block)
            yield block

    # a file by itself

    def file_findings(self, number: int) -> list[Finding]:
        """Return what is wrong with one file, whatever messages there are."""
        before = len(self._found)
        for _ in self._checked_blocks(number):
            pass
        found = self._found[before:]
        del self._found[before:]
        return found

    def add(self, findings: list[Finding]) -> None:
        """Take what is wrong with the files."""
        self._found += findings

    # with the messages

    def pass_over(self, span: IndexSpan | None, physical_offset: int) -> bool:
        """
        Pass over the entries of the next messages, of which the first stands at `physical_offset`.

        False where they are not the next ones: show it the messages.
        """
        if not self.paths:
            return True
        if span is None:
            return False
        if self._row < span.first:
            self._settle()
            self._dangles_before(physical_offset)
        if self._row != span.first:
            return False
        if span.count:
            self._say_missing(is_end=False)
            self._move_to(span.first + span.count)
        return True

    @property
    def _row(self) -> int:
        """The first row of which no message was found yet."""
        return self._table_row + self._next_row - len(self._group) - len(self._following)

    def _move_to(self, row: int) -> None:
        self._group, self._following = [], []
        self._is_settled = False
        if row <= self._table_row + len(self._table):
            self._next_row = row - self._table_row
            return
        self._table = self._table[:0]
        self._table_row = self._block_row = row
        self._next_row = 0
        self._blocks = self._read_blocks()

    def _settle(self) -> None:
        if not self._is_settled:
            self._is_settled = True
            self._group = self._pull()
            self._following = self._pull()

    def take(self, request: DispatchRequest) -> None:
        """Hold the entries of a message against it."""
        self._settle()
        super().take(request)

    def _is_alike(self, expected: IndexEntries, last_place: int) -> bool:
        self._settle()
        return super()._is_alike(expected, last_place)

    def findings(self, log: FollowedLog) -> Iterator[Finding]:
        """Yield what is wrong, once the whole log was walked."""
        self._settle()
        yield from super().findings(log)
