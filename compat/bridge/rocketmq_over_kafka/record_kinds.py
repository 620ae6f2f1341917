"""
What the records have in common that messages of one kind become.

A client's messages differ in body, unique key and time alone. So properties are taken apart, and
the rest is put together, once for all of them: a record is what is kept here around those parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.bridge.rocketmq_over_kafka.message_records import (
    REST_NAME,
    length_field,
    sized,
    split_properties,
)
from logstore.compat.record_mapping import packed_hosts, rest_around_crc
from logstore.segments.rocketmq.messages.message_layout import VERSIONS
from logstore.segments.rocketmq.messages.properties import UNIQUE_KEY
from logstore.segments.rocketmq.messages.system_flags import COMPRESSED

if TYPE_CHECKING:
    from logstore.segments.rocketmq.messages.message_run import MessageKind

_NAME = UNIQUE_KEY.encode()
_NEEDLE = _NAME + b"\x01"
_CRC_BYTES = 4


class RecordKind:
    """
    The records of one kind of messages: `key` and the parts around what differs.

    A record is `key`, the body behind its length, `before`, the unique key, `between`, the CRC of
    the body, `behind`; `behind_bytes` are those of all behind the body. Use :meth:`of`, and
    :meth:`stored_at` before each use.
    """

    __slots__ = (
        "_headers",
        "_hosts",
        "_keys_index",
        "_kind",
        "_stored_ms",
        "before",
        "behind",
        "behind_bytes",
        "between",
        "key",
    )

    def __init__(
        self, kind: MessageKind, key: bytes, before: bytes, headers: bytes, keys_index: int
    ) -> None:
        self._kind = kind
        self._headers = headers
        self._keys_index = keys_index
        self._hosts = packed_hosts(kind.born_host, kind.store_host)
        self._stored_ms = -1
        self.key = key
        self.before = before
        self.between = self.behind = b""
        self.behind_bytes = 0

    @classmethod
    def of(cls, kind: MessageKind) -> RecordKind | None:
        """Return what messages of a kind become; None if each must be looked at by itself."""
        if kind.unique_key_at is not None:
            return None  # more than the unique key is another one each time
        if kind.sys_flag & COMPRESSED or not kind.text_before.endswith(_NEEDLE):
            return None
        unique_key = b"0" * kind.varying_bytes
        whole = split_properties(kind.text_before + unique_key + kind.text_behind)
        first = split_properties(kind.text_before[: -len(_NEEDLE)])
        last = split_properties(kind.text_behind[1:])
        if whole is None or first is None or last is None:
            return None
        key, headers, count, keys_index = whole
        if headers != b"".join((first[1], sized(_NAME), sized(unique_key), last[1])):
            return None
        before = b"".join(
            (length_field(count + 1), first[1], sized(_NAME), length_field(kind.varying_bytes))
        )
        return cls(kind, key, before, last[1], keys_index)

    def stored_at(self, stored_ms: int) -> None:
        """Say when the messages are stored that come next."""
        if stored_ms == self._stored_ms:
            return
        kind = self._kind
        rest, self.behind = rest_around_crc(
            VERSIONS[kind.magic].topic_length_bytes,
            kind.flag,
            kind.sys_flag,
            stored_ms,
            kind.reconsume_times,
            self._keys_index,
            self._hosts,
        )
        from_crc_bytes = _CRC_BYTES + len(self.behind)
        rest_size = length_field(len(rest) + from_crc_bytes)
        self.between = b"".join((self._headers, REST_NAME, rest_size, rest))
        self.behind_bytes = (
            len(self.before) + kind.varying_bytes + len(self.between) + from_crc_bytes
        )
        self._stored_ms = stored_ms
