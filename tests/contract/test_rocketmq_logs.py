"""The three kinds of RocketMQ's logs keep the laws of a log."""

from __future__ import annotations

import zlib

import attrs

from logstore.host import FileSystem, Host
from logstore.segments.rocketmq.files.mapped_file_directory import MappedFileDirectory
from logstore.segments.rocketmq.files.mapped_file_queue import MappedFileQueue
from logstore.segments.rocketmq.log.commit_log_file import CommitLogFile
from logstore.segments.rocketmq.log.record_walk import RecordChecks
from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message_draft import MessageDraft, draft_message
from logstore.segments.rocketmq.queues.batch_consume_queue import BATCH_UNIT, BATCH_UNIT_BYTES
from logstore.segments.rocketmq.queues.batch_consume_queue import RULES as BATCH_RULES
from logstore.segments.rocketmq.queues.consume_queue import RULES
from logstore.segments.rocketmq.queues.consume_queue_unit import UNIT, UNIT_BYTES
from logstore.segments.rocketmq.queues.unit_file import UnitFile, UnitRules, UnitRun
from logstore.testing.recovery_contract import RecoveryContract
from logstore.testing.segment_contract import SegmentContract
from logstore.testing.witnessed_log import AnyLog, LogUnderTest

ASIDE = "/aside"
HOST = HostAddress.of("10.0.0.1", 10911)
#: a property CRC covers what the CRC of the body does not
PROPERTIES = b"TAGS\x01TagA\x02"


class CommitLogUnderTest(LogUnderTest):
    """Records of one length in files that end with a BLANK."""

    finds_inner_offsets = False
    is_preallocated = True
    leaves_remains = True
    checks = RecordChecks()
    file_size_bytes = 1000
    has_property_crc = False

    def open(self, host: Host, directory: str, recovery_point: int | None) -> AnyLog:
        """Open or create."""

        def make_file(
            fs: FileSystem, path: str, base_offset: int, size_bytes: int, offset_bytes: int
        ) -> CommitLogFile:
            return CommitLogFile(
                fs, path, base_offset, size_bytes, offset_bytes, checks=self.checks
            )

        files = MappedFileDirectory(
            host.fs,
            directory,
            make_file,
            self.file_size_bytes,
            is_clean=recovery_point is None,
            makes_spare=True,
            aside_directory=ASIDE,
        )
        return MappedFileQueue(files, recovery_point)

    def draft(self, number: int) -> MessageDraft:
        """Return a message whose body bears its number."""
        draft = draft_message(
            topic="T",
            body=b"message %7d" % number,
            queue_id=1,
            properties_text=PROPERTIES if self.has_property_crc else b"",
            born_timestamp_ms=1_700_000_000_000,
            born_host=HOST,
            store_host=HOST,
            has_property_crc=self.has_property_crc,
        )
        draft.stamp(7, 1_700_000_000_001)
        return draft


class PlainCommitLog(CommitLogUnderTest):
    """
    As RocketMQ writes it: a checksum of the body, none of the rest.

    Nothing in the format tells that a power loss took a part of a header. So the sectors are as
    large as an entry here: entries are lost or kept as wholes, in any order.
    """

    sector_bytes = 107
    #: what neither the body's CRC nor a rule covers: queue id, flag, queue offset; system flag but
    #: for its bits of IPv6, times, hosts; topic
    unprotected_bytes = frozenset({*range(12, 28), *range(36, 84), 107 - 3, 107 - 4})


class CheckedCommitLog(CommitLogUnderTest):
    """With ``enabledAppendPropCRC`` and ``forceVerifyPropCRC``: a checksum of all."""

    checks = RecordChecks(has_property_crc=True)
    file_size_bytes = 1400
    has_property_crc = True


@attrs.frozen
class UnitDraft:
    """A unit that bears its number, and of which a witness can tell the place."""

    number: int
    unit_bytes: int
    offset_count: int = 1
    max_timestamp_ms: int = -1

    @property
    def size_bytes(self) -> int:
        """One unit."""
        return self.unit_bytes

    def stamped(self, base_offset: int) -> UnitRun:
        """Return the unit at its place."""
        return UnitRun(base_offset, self.encoded(base_offset), self.unit_bytes)

    def encoded(self, base_offset: int) -> bytes:
        """Return a unit whose tags code follows from all else."""
        raise NotImplementedError


@attrs.frozen
class SimpleDraft(UnitDraft):
    """20 bytes."""

    def encoded(self, base_offset: int) -> bytes:
        """Return a unit whose tags code follows from all else."""
        return simple_unit(base_offset, 1 + self.number * 1000, 100 + self.number)


@attrs.frozen
class BatchDraft(UnitDraft):
    """46 bytes."""

    def encoded(self, base_offset: int) -> bytes:
        """Return a unit whose tags code follows from all else."""
        return batch_unit(base_offset, 1 + self.number * 1000, 100 + self.number)


def simple_unit(number: int, physical_offset: int, size_bytes: int) -> bytes:
    """Return a unit whose tags code is a checksum of all else and of its place."""
    checksum = zlib.crc32(b"%d %d %d" % (number, physical_offset, size_bytes))
    return UNIT.pack(physical_offset, size_bytes, checksum)


def batch_unit(number: int, physical_offset: int, size_bytes: int) -> bytes:
    """Return a unit whose tags code is a checksum of all else and of its place."""
    checksum = zlib.crc32(b"%d %d %d" % (number, physical_offset, size_bytes))
    return BATCH_UNIT.pack(physical_offset, size_bytes, checksum, 5, 3 * size_bytes, 3, -1, 0)


def is_genuine(number: int, unit: bytes) -> bool:
    """Say what a commit log could say: whether the message of that queue offset stands there."""
    physical_offset, size_bytes = UNIT.unpack_from(unit)[:2]
    make = simple_unit if len(unit) == UNIT_BYTES else batch_unit
    return make(number, physical_offset, size_bytes) == unit


class QueueUnderTest(LogUnderTest):
    """Units in files of ten; a witness knows them, as the commit log does in a store."""

    is_preallocated = True
    leaves_remains = True
    rolls_by_hand = False
    rules: UnitRules

    def open(self, host: Host, directory: str, recovery_point: int | None) -> AnyLog:
        """Open or create."""

        def make_file(
            fs: FileSystem, path: str, base_offset: int, size_bytes: int, offset_bytes: int
        ) -> UnitFile:
            assert offset_bytes == self.rules.size_bytes
            file = UnitFile(fs, path, base_offset, size_bytes, self.rules, is_genuine)
            file.keeps_remains_aside = True
            return file

        files = MappedFileDirectory(
            host.fs,
            directory,
            make_file,
            10 * self.rules.size_bytes,
            offset_bytes=self.rules.size_bytes,
            is_clean=recovery_point is None,
            aside_directory=ASIDE,
        )
        return MappedFileQueue(files, recovery_point)


class ConsumeQueueUnderTest(QueueUnderTest):
    """Units of 20 bytes."""

    rules = RULES

    def draft(self, number: int) -> UnitDraft:
        """Return a unit that bears its number."""
        return SimpleDraft(number, UNIT_BYTES)


class BatchConsumeQueueUnderTest(QueueUnderTest):
    """Units of 46 bytes."""

    rules = BATCH_RULES

    def draft(self, number: int) -> UnitDraft:
        """Return a unit that bears its number."""
        return BatchDraft(number, BATCH_UNIT_BYTES)


class TestPlainCommitLog(SegmentContract, RecoveryContract):
    """Records with the checksum that RocketMQ gives them keep the laws."""

    layout = PlainCommitLog()


class TestCheckedCommitLog(SegmentContract, RecoveryContract):
    """Records with a checksum of everything keep the laws, however small the sectors are."""

    layout = CheckedCommitLog()


class TestConsumeQueue(SegmentContract, RecoveryContract):
    """Consume queue units keep the laws."""

    layout = ConsumeQueueUnderTest()


class TestBatchConsumeQueue(SegmentContract, RecoveryContract):
    """Batch consume queue units keep the laws."""

    layout = BatchConsumeQueueUnderTest()
