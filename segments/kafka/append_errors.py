"""Why a produced batch was refused; nothing of it was written (Kafka: ``LogValidator``)."""

from __future__ import annotations

from typing import NamedTuple

from logstore.errors import RejectedAppendError


class InvalidRecordError(RejectedAppendError):
    """The batch or one of its records breaks a rule of the format or of the topic."""

    def __init__(self, message: str, record_errors: tuple[RecordError, ...] = ()) -> None:
        super().__init__(message)
        self.record_errors = record_errors


class RecordError(NamedTuple):
    """What is wrong with one record of the batch, by its index in it (KIP-467)."""

    batch_index: int
    message: str


class NotOneBatchError(InvalidRecordError):
    """What stands in place of a batch is none of magic 2, or more than one."""


class InvalidTimestampError(InvalidRecordError):
    """A timestamp lies outside of what the topic accepts, or has the wrong type."""


class CorruptMessageError(RejectedAppendError):
    """The batch is cut short or its CRC is wrong."""


class UnreadableBatchError(CorruptMessageError):
    """What stands in place of a batch has a length or a magic that there is not."""


class ShortHeaderError(CorruptMessageError):
    """A batch says that it ends inside of its own header."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(f"a batch of {size_bytes} bytes has no room for its header")
        self.size_bytes = size_bytes


class MessageTooLargeError(RejectedAppendError):
    """The batch is larger than ``max.message.bytes``."""


class RecordListTooLargeError(RejectedAppendError):
    """The batch is larger than a whole segment."""


class UnsupportedCompressionError(RejectedAppendError):
    """The batch's codec is unknown, or not allowed in this request version."""


class OutOfOrderSequenceError(RejectedAppendError):
    """A batch does not continue its producer's numbering, and is none of the last five."""


class InvalidProducerEpochError(RejectedAppendError):
    """A newer instance of the producer has written already."""


class InvalidTransactionStateError(RejectedAppendError):
    """
    A batch outside of transactions comes from a producer that has one open.

    Or one inside of a transaction that the coordinator was not asked about.
    """


class TransactionCoordinatorFencedError(RejectedAppendError):
    """A marker comes from a transaction coordinator that has a successor."""
