"""Why a request is not served: a code and a text (``GrpcProxyException``, ``ResponseBuilder``)."""

from __future__ import annotations

from typing import Any

from logstore.compat.rocketmq.proxy.codes import Code
from logstore.compat.rocketmq.proxy.schema import MESSAGES
from logstore.compat.rocketmq.wire.codes import ResponseCode
from logstore.errors import LogStoreError

#: what a broker's answers are for clients of the proxy
_CODES = {
    ResponseCode.SUCCESS: Code.OK,
    ResponseCode.SYSTEM_BUSY: Code.TOO_MANY_REQUESTS,
    ResponseCode.REQUEST_CODE_NOT_SUPPORTED: Code.NOT_IMPLEMENTED,
    ResponseCode.LMQ_QUOTA_EXCEEDED: Code.LITE_TOPIC_QUOTA_EXCEEDED,
    ResponseCode.LITE_SUBSCRIPTION_QUOTA_EXCEEDED: Code.LITE_SUBSCRIPTION_QUOTA_EXCEEDED,
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST: Code.CONSUMER_GROUP_NOT_FOUND,
}


class ProxyError(LogStoreError):
    """The request is refused."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


class StreamEndedError(LogStoreError):
    """A client has been told why nothing more is taken from it."""


def status(code: Code, message: str | None = None) -> Any:
    """Return a status; without a text it says its own name."""
    return MESSAGES["Status"](code=int(code), message=code.name if message is None else message)


def status_of(code: int, remark: str | None) -> Any:
    """Return the status that a broker's answer is."""
    found = _CODES.get(ResponseCode(code), Code.INTERNAL_SERVER_ERROR)
    return status(found, str(int(code)) if remark is None else remark)


def joint_status(codes: set[int], nothing: str) -> Any:
    """Return the status of many results; `nothing` is said of none."""
    if not codes:
        return status(Code.INTERNAL_SERVER_ERROR, nothing)
    return status(Code.MULTIPLE_RESULTS if len(codes) > 1 else Code(next(iter(codes))))
