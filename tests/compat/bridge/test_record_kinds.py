"""Messages of a kind as records: the same batch as if each was looked at by itself."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.bridge.rocketmq_over_kafka.message_records import RecordRun
from logstore.compat.bridge.rocketmq_over_kafka.record_kinds import RecordKind
from logstore.compat.record_mapping import packed_hosts
from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message_run import MessageKind
from logstore.segments.rocketmq.messages.system_flags import COMPRESSED
from tests.compat.bridge.bridges import BORN, STORED

NOW_MS = 1_700_000_000_000
ALIKE = (
    (b"UNIQ_KEY\x01", b"\x02"),
    (b"UNIQ_KEY\x01", b"\x02WAIT\x01true\x02"),
    (b"KEYS\x01k\x02UNIQ_KEY\x01", b"\x02"),
    (b"a\x01b\x02UNIQ_KEY\x01", b"\x02KEYS\x01" + b"k" * 200 + b"\x02TAGS\x01red\x02"),
    ("TAGS\x01größe\x02UNIQ_KEY\x01".encode(), b"\x02"),
)
UNLIKE = (
    (b"UNIQ_KEY\x01", b""),
    (b"EXTEND_UNIQ_KEY\x01", b"\x02"),
    (b"a\x01\x02UNIQ_KEY\x01", b"\x02"),
    (b"UNIQ_KEY\x01", b"\x02a\x011\x02a\x012\x02"),
    (b"UNIQ_KEY\x01", b"\x02UNIQ_KEY\x01two\x02"),
    (b"UNIQ_KEY\x01", b"\x02\xff\x01b\x02"),
)


def kind_of(
    texts: tuple[bytes, bytes], *, key_bytes: int = 16, sys_flag: int = 0, topic: str = "orders"
) -> MessageKind:
    """Return a kind of messages with these properties around the unique key."""
    return MessageKind(
        topic=topic,
        queue_id=3,
        flag=77,
        sys_flag=sys_flag,
        reconsume_times=2,
        text_before=texts[0],
        example=bytes(key_bytes),
        text_behind=texts[1],
        born_host=BORN,
        store_host=HostAddress.of("fe80::1", 10911) if sys_flag else STORED,
    )


@pytest.mark.parametrize("texts", ALIKE)
@pytest.mark.parametrize(
    "more", [{}, {"key_bytes": 80}, {"sys_flag": 1 << 5}, {"topic": "o" * 150}]
)
def test_the_batch_is_the_same(texts: tuple[bytes, bytes], more: dict[str, Any]) -> None:
    """Whatever bodies, times and hosts are, and whenever the messages are stored."""
    kind = kind_of(texts, **more)
    found = RecordKind.of(kind)
    assert found is not None
    for stored_ms in (NOW_MS, NOW_MS + 1, NOW_MS):
        together, alone = RecordRun(stored_ms), RecordRun(stored_ms)
        found.stored_at(stored_ms)
        for number in range(140):
            body, born_ms = b"x" * (number**2), NOW_MS + 100 * (number - 3) * (1 - number % 3)
            key = b"%0*d" % (kind.varying_bytes, number)
            draft = kind.draft(body, key, born_ms)
            together.add_like(found, body, key, born_ms)
            hosts = packed_hosts(kind.born_host, kind.store_host)
            text = draft.properties_text
            assert alone.add(body, text, born_ms, draft.body_crc, kind.flag, draft, hosts)
        assert together.batch() == alone.batch()
        assert together.size_bytes == alone.size_bytes == len(alone.batch())
        assert together.max_born_ms == alone.max_born_ms > NOW_MS


@pytest.mark.parametrize("texts", UNLIKE)
def test_odd_properties_make_no_kind(texts: tuple[bytes, bytes]) -> None:
    """Such messages are looked at one by one."""
    assert RecordKind.of(kind_of(texts)) is None


def test_keys_that_vary_make_no_kind() -> None:
    """They are the record's key."""
    kind = MessageKind(
        topic="orders",
        queue_id=3,
        flag=0,
        sys_flag=0,
        reconsume_times=0,
        text_before=b"KEYS\x01",
        example=b"k\x02UNIQ_KEY\x01u",
        text_behind=b"\x02",
        born_host=BORN,
        store_host=STORED,
        unique_key_at=slice(11, 12),
        keys_at=slice(0, 1),
    )
    assert RecordKind.of(kind) is None


def test_compressed_bodies_make_no_kind() -> None:
    """The value of a record is what a body was before."""
    assert RecordKind.of(kind_of(ALIKE[0], sys_flag=COMPRESSED)) is None
