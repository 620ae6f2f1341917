"""Requests that are answered with a code other than success, from wherever that is found out."""

from __future__ import annotations

from collections.abc import Mapping

from logstore.errors import LogStoreError


class RefusedError(LogStoreError):
    """
    The answer to a request is this response code and remark; the connection goes on.

    Raised by handlers and by what they call. `ext_fields` are those of the answer's header; None
    where Java answers without a header object.
    """

    def __init__(self, code: int, remark: str, ext_fields: Mapping[str, str] | None = None) -> None:
        super().__init__(remark)
        self.code = code
        self.remark = remark
        self.ext_fields = ext_fields
