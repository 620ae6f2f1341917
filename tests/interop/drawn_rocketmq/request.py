"""One request of RocketMQ's remoting protocol as it is put to both sides."""

from __future__ import annotations

import json
from typing import Any

import attrs

from logstore.compat.rocketmq.wire.binary_header import write_binary_header
from logstore.compat.rocketmq.wire.codes import RequestCode
from tests.compat.rocketmq.frames import BINARY, framed
from tests.interop.drawn.pair import of_side

ONEWAY = 2
#: a system flag of pulls
COMMITS = 1
PULLS = frozenset((RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE))
#: the short names of a send's fields in its second form
SHORT = {
    "producerGroup": "a", "topic": "b", "defaultTopic": "c", "defaultTopicQueueNums": "d",
    "queueId": "e", "sysFlag": "f", "bornTimestamp": "g", "flag": "h", "properties": "i",
    "reconsumeTimes": "j", "unitMode": "k", "maxReconsumeTimes": "l", "batch": "m",
}  # fmt: skip


@attrs.frozen
class Request:
    """What is asked; values may be pairs, one for each side."""

    code: int
    fields: dict[str, Any] | None = None
    body: Any = b""
    version: int = 513
    language: Any = "JAVA"
    serializer: int = 0
    flag: int = 0
    #: the opaque is counted where this is None
    opaque: int | None = None
    #: it was right, and then one thing was made wrong
    is_changed: bool = False

    @property
    def name(self) -> str:
        """The name of its code."""
        known = {int(one) for one in RequestCode}
        return RequestCode(self.code).name if self.code in known else str(self.code)

    @property
    def is_oneway(self) -> bool:
        """Tell whether no answer is wanted."""
        return bool(self.flag & ONEWAY)

    def frame(self, opaque: int, side: int) -> bytes:
        """Return the bytes for one side: 0 is ours, 1 the real one."""
        fields, body = of_side(self.fields, side), of_side(self.body, side)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        if self.serializer == BINARY:
            texts = {name: _text(value) for name, value in (fields or {}).items()}
            header = write_binary_header(
                self.code, opaque, self.flag, str(self.language), self.version, None, texts
            )
        else:
            content = {
                "code": self.code, "extFields": fields, "flag": self.flag,
                "language": self.language, "opaque": opaque,
                "serializeTypeCurrentRPC": "JSON", "version": self.version,
            }  # fmt: skip
            header = json.dumps(content, separators=(",", ":")).encode()
        return framed(header, data, self.serializer)

    def __str__(self) -> str:
        """Tell it in a line."""
        told = f"{self.name} {self.fields} v{self.version}"
        told += f" {self.language}" if self.language != "JAVA" else ""
        told += " binary" if self.serializer else ""
        told += f" flag={self.flag}" if self.flag else ""
        return told + (f" body={self.body!r:.400}" if self.body else "")


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
