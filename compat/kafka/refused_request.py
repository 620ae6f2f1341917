"""Why an admin request, or one topic or resource in it, was refused: a code and a sentence."""

from __future__ import annotations

import logging

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.refusals import code_of
from logstore.errors import LogStoreError

_log = logging.getLogger(__name__)
_OUR_FAULT = (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR)


class RefusedRequestError(LogStoreError):
    """What a request asks for cannot be done; nothing was changed."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.name)
        self.code = code
        self.message = message


def refusal_of(error: LogStoreError | OSError, subject: str) -> RefusedRequestError:
    """Return how `error`, which struck while `subject` was served, is told to the client."""
    if isinstance(error, RefusedRequestError):
        return error
    code = code_of(error)
    if code in _OUR_FAULT:
        _log.error("%s: %s", subject, error)
    return RefusedRequestError(code, str(error))
