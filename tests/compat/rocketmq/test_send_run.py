"""Sends that come together: answered and stored as if each had come by itself."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterable, Mapping

import pytest

from logstore.compat.rocketmq.broker import Broker
from logstore.compat.rocketmq.wire.codes import RequestCode, ResponseCode
from logstore.testing.manual_clock import ManualClock
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.broker_peer import TOPIC, Peer, a_broker, sent_fields
from tests.compat.rocketmq.frames import Answer, answers, framed, joined, request

PROPERTIES = "TAGS\x01red\x02UNIQ_KEY\x01{key}\x02WAIT\x01true\x02"


def sends(
    numbers: Iterable[int], properties: str = PROPERTIES, **fields: object
) -> list[tuple[int, dict[str, object], bytes]]:
    """Return (opaque, fields, body) of sends to four queues, as a Java client would make them."""
    return [
        (
            number,
            sent_fields(
                TOPIC,
                number % 4,
                properties.format(key=f"7F0000010000{number:020X}", number=number),
                **{"g": 1_700_000_000_000 + number, **fields},
            ),
            b"body %d" % number,
        )
        for number in numbers
    ]


def joined_frames(requests: Iterable[tuple[int, Mapping[str, object], bytes]]) -> bytes:
    """Return the frames of SEND_MESSAGE_V2 one behind the other."""
    return b"".join(
        request(RequestCode.SEND_MESSAGE_V2, fields, body, opaque=opaque)
        for opaque, fields, body in requests
    )


def spaced_frames(requests: Iterable[tuple[int, Mapping[str, object], bytes]]) -> list[bytes]:
    """Return the same frames, written so that they are looked at one by one."""
    return [
        framed(json.dumps({"opaque": opaque, "code": 310, "extFields": fields}).encode(), body)
        for opaque, fields, body in requests
    ]


def fed(broker: Broker, data: bytes, port: int = 40001) -> list[Answer]:
    """Return what a new connection is answered to bytes of one read."""
    return answers(joined(broker.connect("127.0.0.1", port).feed(data)))


def opened(settings: Mapping[str, str] | None = None) -> Broker:
    """Return a broker that knows the topic, its queues, and what sends look like."""
    broker = a_broker(SimulatedHost(clock=ManualClock()), settings)
    for _ in range(3):
        assert {answer.code for answer in fed(broker, joined_frames(sends(range(4))))} == {0}
    return broker


def log_of(broker: Broker) -> bytes:
    """Return the commit log's first file."""
    return broker.store.commit_log.read(0, broker.store.commit_log.max_physical_offset)


@pytest.mark.parametrize("settings", [{}, {"mappedFileSizeCommitLog": "4096"}])
@pytest.mark.parametrize(
    "properties",
    [
        PROPERTIES,
        "UNIQ_KEY\x01{key}\x02",
        "KEYS\x01{key}\x02UNIQ_KEY\x01{key}\x02",
        "KEYS\x01order-{number}\x02UNIQ_KEY\x01{key}\x02WAIT\x01true\x02TAGS\x01red\x02",
        "UNIQ_KEY\x01{key}\x02KEYS\x01a{number} b{number}\x02",
        "KEYS\x01{number}\x02NAME\x01größe\x02UNIQ_KEY\x01{key}\x02",
        "UNIQ_KEY\x01{key}\x02KEYS\x01größe-{number}\x02",
        "KEYS\x01{number}\x01x\x02UNIQ_KEY\x01{key}\x02",
        "KEYS\x01\x02UNIQ_KEY\x01{key}\x02",
        "KEYS\x01{number}\x02UNIQ_KEY\x01{key}\x02KEYS\x01again\x02",
        "MYKEYS\x01{number}\x02UNIQ_KEY\x01{key}\x02",
        "MYKEYS\x01x\x02UNIQ_KEY\x01{key}\x02KEYS\x01{number}\x02",
        "UNIQ_KEY\x01{key}\x02KEYS\x01{number}",
        "UNIQ_KEY\x01{key}\x02TAGS\x01größe\x02",
        "UNIQ_KEY\x01{key}\x02DELAY\x013\x02",
        "UNIQ_KEY\x01{key}\x02TRAN_MSG\x01true\x02PGROUP\x01g\x02",
        "UNIQ_KEY\x01{key}\x02MSG_REGION\x01elsewhere\x02",
        "UNIQ_KEY\x01{key}",
        "EXTEND_UNIQ_KEY\x01{key}\x02",
        "TAGS\x01red\x02",
    ],
)
def test_sends_of_one_read_are_served_as_one_by_one(
    settings: Mapping[str, str], properties: str
) -> None:
    """The commit log, every queue and every answer are the same, whatever the properties are."""
    together, alone = opened(settings), opened(settings)
    for start in range(10, 60, 10):
        requests = sends(range(start, start + 10), properties)
        gathered = fed(together, joined_frames(requests))
        single = [answer for frame in spaced_frames(requests) for answer in fed(alone, frame)]
        if "UNIQ_KEY" in properties and not properties.startswith("EXTEND"):
            assert [one.header for one in gathered] == [one.header for one in single]
        assert [one.opaque for one in gathered] == list(range(start, start + 10))
        assert {one.code for one in gathered} == {0}
    if "UNIQ_KEY" in properties and not properties.startswith("EXTEND"):
        assert log_of(together) == log_of(alone)
    for queue_id in range(4):
        found = [message.body for message in Peer(together).messages(queue_id=queue_id)]
        assert found == [message.body for message in Peer(alone).messages(queue_id=queue_id)]


@pytest.mark.parametrize(
    "properties", [PROPERTIES, f"KEYS\x01k-{{number}}\x02{PROPERTIES}"], ids=["plain", "keys"]
)
def test_sends_of_one_read_are_one_write_and_one_answer(properties: str) -> None:
    """A hundred sends that come together cost the disk and the socket one write each."""
    broker = opened()
    for _ in range(2):
        fed(broker, joined_frames(sends(range(100, 104), properties)))
    host = broker.host
    assert isinstance(host, SimulatedHost)
    connection = broker.connect("127.0.0.1", 40001)
    before = len(host.fs.journal.matching(path="*/commitlog/*"))
    for numbers in (range(100, 120), range(200, 220)):
        frame = joined_frames(sends(numbers, properties))
        target = connection.writable()
        target[: len(frame)] = frame
        connection.received(len(frame))
        assert len(connection.output) == 1
        assert len(answers(joined(connection.output))) == 20
        connection.output.clear()
    assert len(host.fs.journal.matching(path="*/commitlog/*")) - before == 2


def test_what_stands_between_sends_is_served_between_them() -> None:
    """A pull in the midst of a read is answered in its turn, with what it finds one by one."""
    together, alone = opened(), opened()
    asked = Peer(together).pull_fields(TOPIC, 0, 2, "g", sysFlag=4)
    pull = request(RequestCode.PULL_MESSAGE, asked, opaque=7)
    before, behind = sends([4, 8]), sends([12])
    gathered = fed(together, joined_frames(before) + pull + joined_frames(behind))
    single = fed(alone, b"".join([*spaced_frames(before), pull, *spaced_frames(behind)]))
    assert [one.opaque for one in gathered] == [4, 8, 7, 12]
    assert gathered == single
    assert log_of(together) == log_of(alone)


def test_a_disk_that_refuses_is_told_to_each() -> None:
    """When no write succeeds every send is refused; the next ones go on where the queue was."""
    broker = opened()
    host = broker.host
    assert isinstance(host, SimulatedHost)
    end = broker.store.commit_log.max_physical_offset
    host.fs.faults.fail_next("write", errno.EIO, path="*/commitlog/*", count=5)
    answered = fed(broker, joined_frames(sends(range(4, 8))))
    assert [one.code for one in answered] == [ResponseCode.SYSTEM_ERROR] * 4
    assert broker.store.commit_log.max_physical_offset == end
    (after,) = fed(broker, joined_frames(sends([8])))
    assert after.code == 0
    assert after.fields is not None
    assert after.fields["queueOffset"] == "3"


def test_a_topic_that_changes_is_looked_at_again() -> None:
    """Sends of a kind that was served before are refused once their queue is gone."""
    broker = opened()
    Peer(broker).ask(
        RequestCode.UPDATE_AND_CREATE_TOPIC,
        {
            "topic": TOPIC, "defaultTopic": "TBW102", "readQueueNums": 2, "writeQueueNums": 2,
            "perm": 6, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false",
        },
    )  # fmt: skip
    answered = fed(broker, joined_frames(sends(range(4, 8))))
    refused = ResponseCode.INVALID_PARAMETER
    assert [one.code for one in answered] == [0, 0, refused, refused]


def test_an_address_that_changes_stands_in_what_follows() -> None:
    """Messages are stored at the address that the broker has now, and so do their ids say."""
    broker = opened()
    broker.advertised_port = 10999
    answered = fed(broker, joined_frames(sends(range(4, 12))))
    assert {(one.fields or {})["msgId"][:16] for one in answered} == {"7F00000100002AF7"}
    last = Peer(broker).messages(queue_id=3)[-1]
    assert str(last.store_host) == "127.0.0.1:10999"


@pytest.mark.parametrize(
    "field",
    [{"g": 1 << 70}, {"g": "soon"}, {"g": " 1"}, {"h": 1 << 40}, {"h": "0_1"}, {"e": -9}],
)
def test_one_bad_send_spoils_no_other(field: Mapping[str, object]) -> None:
    """A number that cannot be is that request's affair; those around it are stored."""
    broker = opened()
    bad = sends([99], PROPERTIES, **field)
    answered = fed(broker, joined_frames([*sends([4, 8]), *bad, *bad, *bad, *sends([12])]))
    by_opaque = {one.opaque: one.code for one in answered}
    assert (by_opaque[4], by_opaque[8], by_opaque[12]) == (0, 0, 0)
    assert len(answered) == 6
    assert by_opaque[99] == (ResponseCode.SUCCESS if field == {"e": -9} else 1)


def test_who_waits_for_the_disk_is_answered_after_the_sync() -> None:
    """Under SYNC_FLUSH nothing that comes together is answered before it is durable."""
    broker = opened({"flushDiskType": "SYNC_FLUSH"})
    waiting: list[tuple[object, object]] = []
    broker.offload = lambda work, done: waiting.append((work, done))
    connection = broker.connect("127.0.0.1", 40001)
    assert connection.feed(joined_frames(sends(range(4, 8)))) == []
    assert len(waiting) == 1
