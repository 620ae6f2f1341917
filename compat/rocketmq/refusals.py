"""Requests that are answered with a code other than success, from wherever that is found out."""

from __future__ import annotations

from logstore.errors import LogStoreError


class RefusedError(LogStoreError):
    """
    The answer to a request is this response code and remark; the connection goes on.

    Raised by handlers and by what they call.
    """

    def __init__(self, code: int, remark: str) -> None:
        super().__init__(remark)
        self.code = code
        self.remark = remark
