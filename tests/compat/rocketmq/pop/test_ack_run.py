"""Acknowledgements that come together: answered and stored as if each had come by itself."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable

import pytest

from logstore.compat.rocketmq.broker import Broker
from logstore.compat.rocketmq.wire.codes import RequestCode
from tests.compat.rocketmq.frames import Answer, answers, framed, joined, request
from tests.compat.rocketmq.pop.pop_stage import Popped, PopStage

Fields = dict[str, str]
COUNT = 24


def texts(popped: Popped) -> Fields:
    """Return the fields of an acknowledgement as a client in Java writes them."""
    return {name: str(value) for name, value in popped.fields().items()}


def together(requests: list[Fields], flag: int = 0) -> bytes:
    """Return the frames one behind the other."""
    code = RequestCode.ACK_MESSAGE
    return b"".join(
        request(code, fields, opaque=place, flag=flag) for place, fields in enumerate(requests)
    )


def spaced(requests: list[Fields], flag: int = 0) -> list[bytes]:
    """Return the same, written so that they are looked at one by one."""
    code = int(RequestCode.ACK_MESSAGE)
    return [
        framed(
            json.dumps({"opaque": place, "code": code, "flag": flag, "extFields": fields}).encode()
        )
        for place, fields in enumerate(requests)
    ]


def fed(broker: Broker, *reads: bytes) -> list[Answer]:
    """Return what a new connection is answered."""
    connection = broker.connect("127.0.0.1", 40_777)
    return [answer for data in reads for answer in answers(joined(connection.feed(data)))]


def staged(**settings: str) -> tuple[PopStage, list[Fields]]:
    """Return a broker whose messages of four queues were popped, and what acknowledges them."""
    stage = PopStage(**settings)
    for queue_id in range(4):
        stage.produce(*(b"%d" % number for number in range(COUNT // 4)), queue_id=queue_id)
    found = [texts(one) for _ in range(2) for one in stage.popped(maxMsgNums=COUNT // 2)]
    assert len(found) == COUNT
    stage.pass_ms(500)  # what was put for the pops is in the wheel
    return stage, found


def log_of(broker: Broker) -> bytes:
    """Return the commit log's first file."""
    return broker.store.commit_log.read(0, broker.store.commit_log.max_physical_offset)


def counted(stage: PopStage) -> object:
    """Return what a broker has counted."""
    info = json.loads(stage.peer.ask(RequestCode.GET_BROKER_RUNTIME_INFO).body)["table"]
    puts = {name: info[name] for name in info if "ut" in name and "MaxRecently" not in name}
    in_flight: dict[object, int] = vars(stage.broker.popping.in_flight)["_counts"]
    return puts, dict(in_flight), stage.broker.timed_delivery.waiting_count


def unchanged(fields: Fields) -> Fields:
    """Return what a client sends."""
    return fields


def with_handle(place: int, word: str) -> Callable[[Fields], Fields]:
    """Return what puts another word into a handle."""

    def changed(fields: Fields) -> Fields:
        words = fields["extraInfo"].split(" ")
        words[place : place + 1] = word.split(" ") if word else []
        return fields | {"extraInfo": " ".join(words)}

    return changed


def with_field(name: str, value: str) -> Callable[[Fields], Fields]:
    """Return what puts another value into a field."""
    return lambda fields: fields | {name: value}


#: what a client may say that is not quite as Java's does
CHANGES: dict[str, Callable[[Fields], Fields]] = {
    "plain": unchanged,
    "start": with_handle(0, "00"),
    "start-negative": with_handle(0, "-1"),
    "popped-long-ago": with_handle(1, "1"),
    "never": with_handle(2, "99999999999999"),
    "too-late": with_handle(2, "0"),
    "three-days": with_handle(2, "259200000"),
    "ordered": with_handle(3, "999"),
    "other-queue": with_handle(3, "7"),
    "no-such-queue": with_handle(3, "50"),
    "retry": with_handle(4, "1"),
    "odd-broker": with_handle(5, "br%d"),
    "quoted-broker": with_handle(5, 'b"r'),
    "strange-broker": with_handle(5, "größe"),
    "short": with_handle(5, ""),
    "six-words": lambda fields: (
        fields | {"extraInfo": " ".join(fields["extraInfo"].split(" ")[:6])}
    ),
    "digits": with_handle(1, "１２"),  # noqa: RUF001 - Java reads them as digits
    "group": with_field("consumerGroup", "nobody%s"),
    "group-quoted": with_field("consumerGroup", 'a"b\\'),
    "group-strange": with_field("consumerGroup", "größe"),
    "group-empty": with_field("consumerGroup", ""),
    "topic": with_field("topic", "nowhere"),
    "queue": with_field("queueId", "9"),
    "queue-zeros": with_field("queueId", "00"),
    "queue-plus": with_field("queueId", "+0"),
    "offset-behind": with_field("offset", "6"),
    "offset-far": with_field("offset", "600"),
    "offset-negative": with_field("offset", "-1"),
    "lite": with_field("liteTopic", "l"),
    "lite-blank": with_field("liteTopic", " "),
}


@pytest.mark.parametrize("name", CHANGES)
def test_acknowledgements_of_one_read_are_served_as_one_by_one(name: str) -> None:
    """The commit log, every answer and all that is counted are the same, whatever they say."""
    gathered, single = staged(), staged()
    found: list[tuple[list[bytes], bytes, object]] = []
    for (stage, requests), is_together in ((gathered, True), (single, False)):
        changed = [CHANGES[name](one) for one in requests[: COUNT // 2]] + requests[COUNT // 2 :]
        reads = [together(changed)] if is_together else spaced(changed)
        told = fed(stage.broker, *reads)
        assert [one.opaque for one in sorted(told, key=lambda one: one.opaque)] == [*range(COUNT)]
        said = [one.header for one in sorted(told, key=lambda one: one.opaque)]
        stage.pass_ms(300)
        found.append((said, log_of(stage.broker), counted(stage)))
    assert found[0] == found[1]


def test_plain_ones_are_gathered() -> None:
    """They are not served one by one, and others are."""
    stage, requests = staged()
    run = stage.broker.send_run
    assert run is not None
    header = together(requests[:1])[8:]
    assert (run.take_ack(header), run.is_filled) == (True, True)
    assert not run.take_ack(together([requests[0] | {"offset": "600"}])[8:])
    (answer,) = answers(joined(run.finish()))
    assert (answer.code, answer.opaque, run.is_filled) == (0, 0, False)


@pytest.mark.parametrize("settings", [{}, {"mappedFileSizeCommitLog": "4096"}])
def test_what_was_acknowledged_together_does_not_come_again(settings: dict[str, str]) -> None:
    """The others do, also where the log's files are small."""
    stage, requests = staged(**settings)
    assert {one.code for one in fed(stage.broker, together(requests[::2]))} == {0}
    stage.pass_ms(20_000)
    again = [one for _ in range(3) for one in stage.popped()]
    assert len(again) == COUNT // 2
    assert {one.message.reconsume_times for one in again} == {1}


def test_what_need_not_be_answered_is_not() -> None:
    """It counts all the same."""
    stage, requests = staged()
    assert fed(stage.broker, together(requests, flag=2)) == []
    stage.pass_ms(20_000)
    assert stage.bodies() == []


def test_a_disk_that_refuses_is_not_told() -> None:
    """As with real brokers the client hears of a success, and the messages come again."""
    stage, requests = staged()
    stage.host.fs.faults.fail_next("write", errno.EIO, path="*/commitlog/*", count=1 + COUNT)
    told = fed(stage.broker, together(requests))
    assert {one.code for one in told} == {0}
    stage.pass_ms(30_000)
    assert len([one for _ in range(3) for one in stage.popped()]) == COUNT
