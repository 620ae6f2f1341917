"""Batches that are sent like others before: answered and stored as if each were looked at."""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping

import pytest

from logstore.compat.rocketmq.broker import Broker
from logstore.compat.rocketmq.connection import Channel
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.compat.rocketmq.wire.remoting import Command
from logstore.segments.rocketmq.messages.message_batch import BatchItem, encode_batch_body
from logstore.segments.rocketmq.messages.system_flags import INNER_BATCH
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import TOPIC, Peer, a_broker, sent_fields
from tests.compat.rocketmq.frames import Answer, answers, framed, joined

OUTER = "UNIQ_KEY\x01{key}\x02WAIT\x01true\x02"
CODE = int(RequestCode.SEND_BATCH_MESSAGE)


def key_of(number: int) -> str:
    """Return a unique key as a Java client counts them."""
    return f"7F0000010000{number:020X}"


def body_of(number: int, count: int = 3) -> bytes:
    """Return a batch of messages of one length."""
    keys = (key_of(1000 * number + index) for index in range(count))
    return encode_batch_body(
        BatchItem(b"%03d" % (number + index), f"UNIQ_KEY\x01{key}\x02WAIT\x01true\x02".encode())
        for index, key in enumerate(keys)
    )


def frame_of(
    number: int,
    outer: str = OUTER,
    body: bytes | None = None,
    *,
    is_careful: bool = False,
    fields: Mapping[str, object] | None = None,
) -> bytes:
    """Return a batch for one of two queues; a careful one is written as no Java client does."""
    sent = {
        **sent_fields(TOPIC, number % 2, outer.format(key=key_of(number))),
        "m": "true", "g": str(1_700_000_000_000 + number), **(fields or {}),
    }  # fmt: skip
    header: dict[str, object] = {"code": CODE, "extFields": sent, "flag": 0, "language": "JAVA"}
    header |= {"opaque": number, "version": 513}
    content = body_of(number) if body is None else body
    if is_careful:
        return framed(json.dumps(header).encode(), content)
    return framed(json.dumps(header, separators=(",", ":")).encode(), content)


def fed(broker: Broker, data: bytes, port: int = 40001) -> list[Answer]:
    """Return what a new connection is answered to bytes of one read."""
    return answers(joined(broker.connect("127.0.0.1", port).feed(data)))


def opened(settings: Mapping[str, str] | None = None, *, is_careful: bool = False) -> Broker:
    """Return a broker that knows the topic, its queues, and what batches look like."""
    broker = a_broker(SimulatedHost(clock=ManualClock()), settings)
    for number in range(6):
        (answer,) = fed(broker, frame_of(number, is_careful=is_careful))
        assert answer.code == 0
    return broker


def index_of(broker: Broker) -> list[tuple[int, int, int, int]]:
    """Return all entries of the index."""
    broker.store.dispatch()
    return [
        file.entry(number)
        for file in broker.store.index.files
        for number in range(1, file.next_number)
    ]


def log_of(broker: Broker) -> bytes:
    """Return the commit log's first file."""
    return broker.store.commit_log.read(0, broker.store.commit_log.max_physical_offset)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"mappedFileSizeCommitLog": "4096"},
        {"enabledAppendPropCRC": "true"},
        {"regionId": 'a"b'},
        {"flushDiskType": "SYNC_FLUSH"},
    ],
)
def test_batches_of_a_kind_are_served_as_all_others(settings: Mapping[str, str]) -> None:
    """Answers, commit log and queues are the same, whichever way a batch takes."""
    quick, careful = opened(settings), opened(settings, is_careful=True)
    for number in range(10, 30):
        (one,) = fed(quick, frame_of(number))
        (other,) = fed(careful, frame_of(number, is_careful=True))
        assert one == other
        assert (one.code, one.opaque) == (0, number)
    assert log_of(quick) == log_of(careful)
    assert index_of(quick) == index_of(careful)
    for queue_id in range(2):
        found = Peer(quick).messages(queue_id=queue_id)
        assert found == Peer(careful).messages(queue_id=queue_id)
        assert len(found) == 3 * (3 + 10)


@pytest.mark.parametrize(
    ("settings", "is_quick"),
    [
        ({}, True),
        ({"enabledAppendPropCRC": "true"}, False),
        ({"flushDiskType": "SYNC_FLUSH"}, False),
        ({"regionId": 'a"b'}, True),
    ],
)
def test_a_batch_is_looked_at_closely_once(
    settings: Mapping[str, str], is_quick: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of a kind never comes to the handler, unless its answer has to wait."""
    broker = opened(settings)
    seen: list[int] = []

    def handle(_broker: Broker, _channel: Channel, request: Command) -> None:
        seen.append(request.opaque)

    monkeypatch.setattr(broker.handlers[CODE], "handle_raw", handle)
    fed(broker, frame_of(10) + frame_of(12))
    assert seen == ([] if is_quick else [10, 12])


@pytest.mark.parametrize(
    "odd",
    [
        {"outer": "WAIT\x01true\x02"},
        {"outer": "UNIQ_KEY\x01{key}\x02INNER_NUM\x013\x02"},
        {"outer": "UNIQ_KEY\x01\x02"},
        {"outer": "UNIQ_KEY\x01{key}"},
        {"outer": "UNIQ_KEY\x01größe\x02"},
        {"outer": "MY_UNIQ_KEY\x01{key}\x02"},
        {"outer": "UNIQ_KEY\x01{key}\x02UNIQ_KEY\x01other\x02"},
        {"body": b"no batch"},
        {"body": b""},
        {"body": encode_batch_body([BatchItem(b"one", b""), BatchItem(b"other", b"TAGS\x01t")])},
        {"e": "0_0"},
        {"f": "soon"},
        {"f": str(1 << 40)},
        {"g": "17_0"},
        {"h": "x"},
        {"h": ""},
        {"h": str(1 << 31)},
        {"g": str(1 << 70)},
        {"j": "-1"},
        {"e": "9"},
        {"e": 1},
        {"m": "false"},
    ],
)
def test_what_is_odd_is_served_as_ever(odd: Mapping[str, object]) -> None:
    """Whatever is unusual about a batch is found out however often it is sent."""
    quick, careful = opened(), opened(is_careful=True)
    for number in (50, 52, 54):
        given = dict(odd)
        outer, body = str(given.pop("outer", OUTER)), given.pop("body", None)
        content = body if isinstance(body, bytes) else None
        (one,) = fed(quick, frame_of(number, outer, content, fields=given))
        (other,) = fed(careful, frame_of(number, outer, content, is_careful=True, fields=given))
        assert (one.code, one.remark, one.fields) == (other.code, other.remark, other.fields)
    assert log_of(quick) == log_of(careful)


def test_what_says_how_many_it_is_is_no_batch_of_one_s_own() -> None:
    """A batch with INNER_NUM is refused, as one message is that has it."""
    (answer,) = fed(opened(), frame_of(50, "UNIQ_KEY\x01{key}\x02INNER_NUM\x013\x02"))
    assert answer.code == ResponseCode.MESSAGE_ILLEGAL
    broker = opened()
    for number, flag in ((50, INNER_BATCH), (52, INNER_BATCH), (54, 4), (56, 4)):
        (answer,) = fed(broker, frame_of(number, fields={"f": str(flag)}))
        assert answer.code == ResponseCode.MESSAGE_ILLEGAL


def test_a_disk_that_refuses_is_told() -> None:
    """A batch that cannot be written is refused; the next one goes on where the queue was."""
    broker = opened()
    host = broker.host
    assert isinstance(host, SimulatedHost)
    end = broker.store.commit_log.max_physical_offset
    host.fs.faults.fail_next("write", errno.EIO, path="*/commitlog/*")
    (refused,) = fed(broker, frame_of(10))
    assert (refused.code, refused.opaque) == (ResponseCode.SYSTEM_ERROR, 10)
    assert broker.store.commit_log.max_physical_offset == end
    (after,) = fed(broker, frame_of(12))
    assert after.code == 0
    assert after.fields is not None
    assert after.fields["queueOffset"] == "9"


def test_a_topic_that_changes_is_looked_at_again() -> None:
    """A batch of a kind that was served before is refused once its queue is gone."""
    broker = opened()
    fields = {
        "topic": TOPIC, "defaultTopic": "TBW102", "readQueueNums": 1, "writeQueueNums": 1,
        "perm": 6, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false",
    }  # fmt: skip
    Peer(broker).ask(RequestCode.UPDATE_AND_CREATE_TOPIC, fields)
    kept, gone = fed(broker, frame_of(10) + frame_of(11))
    assert (kept.code, gone.code) == (0, ResponseCode.INVALID_PARAMETER)
    again, gone = fed(broker, frame_of(12) + frame_of(13))
    assert (again.code, gone.code) == (0, ResponseCode.INVALID_PARAMETER)


def test_an_address_that_changes_stands_in_what_follows() -> None:
    """Messages are stored at the address that the broker has now, and so do their ids say."""
    broker = opened()
    broker.advertised_port = 10999
    answered = [one for number in (10, 12, 14) for one in fed(broker, frame_of(number))]
    assert {(one.fields or {})["msgId"][:16] for one in answered} == {"7F00000100002AF7"}
    assert str(Peer(broker).messages(queue_id=0)[-1].store_host) == "127.0.0.1:10999"


def test_each_client_is_told_apart() -> None:
    """A message is born where its own sender is."""
    broker = opened()
    for port in (40001, 40002, 40001):
        fed(broker, frame_of(10), port)
        assert str(Peer(broker).messages(queue_id=0)[-1].born_host) == f"127.0.0.1:{port}"


def test_who_wants_no_answer_gets_none() -> None:
    """A batch that is sent one-way is stored, every time."""
    broker = opened()
    header = {"code": CODE, "extFields": {**sent_fields(TOPIC, 0), "m": "true"}, "flag": 2}
    text = json.dumps({**header, "opaque": 1, "version": 513}, separators=(",", ":"))
    for number in range(3):
        assert fed(broker, framed(text.encode(), body_of(number))) == []
    assert len(Peer(broker).messages(queue_id=0)) == 9 + 9
