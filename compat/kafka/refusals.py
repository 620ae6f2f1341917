"""From the store's errors to the protocol's codes: the only place where the two meet."""

from __future__ import annotations

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.errors import (
    CorruptEntryError,
    LogStoreError,
    OffsetOutOfRangeError,
    StorageError,
)
from logstore.segments.kafka import append_errors, producer_state
from logstore.segments.kafka.config_keys import ConfigError

_CODES: dict[type[Exception], ErrorCode] = {
    append_errors.InvalidTimestampError: ErrorCode.INVALID_TIMESTAMP,
    append_errors.InvalidRecordError: ErrorCode.INVALID_RECORD,
    append_errors.CorruptMessageError: ErrorCode.CORRUPT_MESSAGE,
    append_errors.MessageTooLargeError: ErrorCode.MESSAGE_TOO_LARGE,
    append_errors.RecordListTooLargeError: ErrorCode.RECORD_LIST_TOO_LARGE,
    append_errors.UnsupportedCompressionError: ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    producer_state.OutOfOrderSequenceError: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    producer_state.InvalidProducerEpochError: ErrorCode.INVALID_PRODUCER_EPOCH,
    producer_state.InvalidTransactionStateError: ErrorCode.INVALID_TXN_STATE,
    producer_state.TransactionCoordinatorFencedError: ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    ConfigError: ErrorCode.INVALID_CONFIG,
    OffsetOutOfRangeError: ErrorCode.OFFSET_OUT_OF_RANGE,
    CorruptEntryError: ErrorCode.CORRUPT_MESSAGE,
    StorageError: ErrorCode.KAFKA_STORAGE_ERROR,
    LogStoreError: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def code_of(error: BaseException) -> ErrorCode:
    """Return the code of the nearest class that has one."""
    for kind in type(error).__mro__:
        code = _CODES.get(kind)
        if code is not None:
            return code
    return ErrorCode.KAFKA_STORAGE_ERROR if isinstance(error, OSError) else _UNKNOWN


_UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR
