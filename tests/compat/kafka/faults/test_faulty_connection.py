"""Requests that meet a planned fault, byte for byte and with time that stands still."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.compat.faults.request_faults import RequestFaults
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.faults.faulty_connection import make_faulty
from logstore.segments.kafka.record import Record, encode_batch
from tests.compat.kafka.conversation import Conversation, build, joined, message_class, plain

TOPIC = "orders"
BATCH = encode_batch([Record(0, 1_700_000_000_000, None, b"v")])


class FaultyConversation(Conversation):
    """A conversation whose requests meet `faults`."""

    def __init__(self) -> None:
        super().__init__()
        self.faults = RequestFaults()
        make_faulty(self.broker, self.faults)
        self.connection = self.broker.connect("127.0.0.1")
        self.create(TOPIC, 2)
        self.create("other")

    def send(self, api: str, version: int, client_id: str = "test", **fields: Any) -> bytes:
        """Send a request; return what comes at once, if anything."""
        request = build(message_class(f"{api}Request"), version, fields)
        request.with_header(correlation_id=77, client_id=client_id)
        return joined(
            self.connection.feed(request.encode(version=version, header=True, framed=True))
        )

    def produce(self, topic: str = TOPIC, acks: int = -1, client_id: str = "test") -> bytes:
        """Append one record to the first partition; return what comes at once."""
        partition = {"index": 0, "records": BATCH}
        data = [{"name": topic, "partition_data": [partition]}]
        return self.send(
            "Produce", 9, client_id, acks=acks, timeout_ms=1000, topic_data=data,
            transactional_id=None,
        )  # fmt: skip

    def code_of(self, answer: bytes) -> int:
        """Return the error code in the answer to :meth:`produce`."""
        told = plain(message_class("ProduceResponse").decode(answer, 9, header=True, framed=True))
        code: int = told["responses"][0]["partition_responses"][0]["error_code"]
        return code

    def fetch(self, version: int = 12, **fields: Any) -> bytes:
        """Fetch from the first partition, waiting for data."""
        given: dict[str, Any] = {
            "replica_id": -1, "max_wait_ms": 500, "min_bytes": 1, "max_bytes": 1 << 20,
            "session_id": 0, "session_epoch": -1, "forgotten_topics_data": [], "rack_id": "",
            "topics": [{"topic": TOPIC, "partitions": [
                {"partition": 0, "current_leader_epoch": -1, "fetch_offset": 0,
                 "last_fetched_epoch": -1, "log_start_offset": -1,
                 "partition_max_bytes": 1 << 20}]}],
        }  # fmt: skip
        return self.send("Fetch", version, **{**given, **fields})

    @property
    def end_offset(self) -> int:
        """The first partition's end."""
        partition = self.broker.partition(TOPIC, 0)
        assert partition is not None
        return partition.end_offset

    def after(self, delay_ms: float) -> bytes:
        """Let time pass; return what was sent in it."""
        self.host.clock.advance(delay_ms)
        self.broker.timers.run()
        output, self.connection.output = self.connection.output, []
        return joined(output)


@pytest.fixture
def talk() -> FaultyConversation:
    """Return a broker with two topics and nothing planned."""
    return FaultyConversation()


def test_nothing_planned(talk: FaultyConversation) -> None:
    """Then all goes as ever."""
    assert talk.code_of(talk.produce()) == 0
    assert talk.end_offset == 1


def test_a_request_fails(talk: FaultyConversation) -> None:
    """It is not served; the next one is."""
    fault = talk.faults.fail("Produce", "NOT_ENOUGH_REPLICAS")
    assert talk.code_of(talk.produce()) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert talk.end_offset == 0
    assert talk.code_of(talk.produce()) == 0
    assert (fault.seen_count, fault.struck_count, fault.is_spent) == (1, 1, True)


def test_a_request_is_served_and_the_answer_lies(talk: FaultyConversation) -> None:
    """The record is there: what a retry without idempotence doubles."""
    talk.faults.fail("Produce", "REQUEST_TIMED_OUT", when="after")
    assert talk.code_of(talk.produce()) == ErrorCode.REQUEST_TIMED_OUT
    assert talk.end_offset == 1


@pytest.mark.parametrize(("when", "end_offset"), [("before", 0), ("after", 1)])
def test_the_broker_hangs_up(talk: FaultyConversation, when: Any, end_offset: int) -> None:
    """Before the request is served, or with the answer lost."""
    talk.faults.drop("Produce", when=when)
    assert talk.produce() == b""
    assert talk.connection.is_closing
    assert talk.end_offset == end_offset


def test_acks_zero_cannot_fail_but_by_hanging_up(talk: FaultyConversation) -> None:
    """As a real broker does, since there is no answer."""
    talk.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER")
    assert talk.produce(acks=0) == b""
    assert talk.connection.is_closing


def test_a_request_is_served_later(talk: FaultyConversation) -> None:
    """And what came after it on the connection, after that."""
    talk.faults.delay("Produce", 200)
    assert talk.produce() == b""
    assert talk.produce() == b""
    assert talk.end_offset == 0
    assert talk.after(199) == b""
    answers = talk.after(1)
    assert talk.end_offset == 2
    half = len(answers) // 2
    assert [talk.code_of(answers[:half]), talk.code_of(answers[half:])] == [0, 0]


def test_an_answer_comes_later(talk: FaultyConversation) -> None:
    """The record is there at once."""
    talk.faults.delay("Produce", 200, when="after")
    assert talk.produce() == b""
    assert talk.end_offset == 1
    assert talk.code_of(talk.after(200)) == 0


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_request_is_held(talk: FaultyConversation, when: Any) -> None:
    """Until it is let go; other connections are served meanwhile."""
    talk.faults.hold("Produce", when=when, client="slow")
    assert talk.produce(client_id="slow") == b""
    held, talk.connection = talk.connection, talk.broker.connect("127.0.0.1")
    assert talk.code_of(talk.produce(client_id="fast")) == 0
    assert talk.end_offset == (2 if when == "after" else 1)
    talk.faults.release()
    assert talk.code_of(joined(held.output)) == 0
    assert talk.end_offset == 2
    assert talk.faults.planned == ()


def test_whoever_hangs_up_is_not_waited_for(talk: FaultyConversation) -> None:
    """A held request of a connection that is gone is not served."""
    talk.faults.hold("Produce")
    talk.produce()
    talk.connection.lost()
    talk.faults.release()
    assert talk.end_offset == 0


def test_a_long_poll_may_be_struck_when_it_ends(talk: FaultyConversation) -> None:
    """With ``after`` it waits for data as ever, and then fails."""
    talk.faults.fail("Fetch", "KAFKA_STORAGE_ERROR", when="after")
    assert talk.fetch() == b""
    answer = talk.after(500)
    told = plain(message_class("FetchResponse").decode(answer, 12, header=True, framed=True))
    (partition,) = told["responses"][0]["partitions"]
    assert (told["error_code"], partition["error_code"]) == (0, ErrorCode.KAFKA_STORAGE_ERROR)
    assert not partition["records"]


def test_a_fetch_of_a_session_fails_for_all_that_is_in_it(talk: FaultyConversation) -> None:
    """Though the request names nothing; and a fault of a topic finds it by its session."""
    talk.produce()
    first = talk.fetch(session_epoch=0)
    told = plain(message_class("FetchResponse").decode(first, 12, header=True, framed=True))
    session_id: int = told["session_id"]
    talk.faults.fail("Fetch", "NOT_LEADER_OR_FOLLOWER", topic="other")
    fault = talk.faults.fail("Fetch", "NOT_LEADER_OR_FOLLOWER", topic=TOPIC)
    answer = talk.fetch(session_id=session_id, session_epoch=1, topics=[])
    told = plain(message_class("FetchResponse").decode(answer, 12, header=True, framed=True))
    assert fault.is_spent
    assert told["session_id"] == session_id
    assert [
        (topic["topic"], partition["partition_index"], partition["error_code"])
        for topic in told["responses"]
        for partition in topic["partitions"]
    ] == [(TOPIC, 0, ErrorCode.NOT_LEADER_OR_FOLLOWER)]


def test_metadata_are_whole_but_for_the_code(talk: FaultyConversation) -> None:
    """An answer without brokers would be the end of every client."""
    talk.faults.fail("Metadata", "LEADER_NOT_AVAILABLE", topic=TOPIC)
    told = talk.ask("Metadata", 9, topics=[{"name": TOPIC}, {"name": "other"}])
    assert {topic["name"]: topic["error_code"] for topic in told["topics"]} == {
        TOPIC: ErrorCode.LEADER_NOT_AVAILABLE,
        "other": 0,
    }
    assert len(told["brokers"]) == 1


@pytest.mark.parametrize("version", [0, 3, 4])
def test_api_versions_fail(talk: FaultyConversation, version: int) -> None:
    """In the version asked, whose header never has tags, or in version 0 as Kafka does it."""
    software = {"client_software_name": "c", "client_software_version": "1"}
    talk.faults.fail("ApiVersions", "INVALID_REQUEST")
    spoilt = talk.ask_bytes("ApiVersions", version, **software)
    assert int.from_bytes(spoilt[8:10], "big") == ErrorCode.INVALID_REQUEST
    sound = talk.ask_bytes("ApiVersions", version, **software)
    assert spoilt[10:] == sound[10:]
    talk.faults.fail("ApiVersions", "UNSUPPORTED_VERSION")
    told = talk.ask("ApiVersions", version, **software)
    assert told["error_code"] == ErrorCode.UNSUPPORTED_VERSION
    assert [entry["api_key"] for entry in told["api_keys"]] == [18]


def test_patterns_choose(talk: FaultyConversation) -> None:
    """By API, client and topic."""
    talk.faults.fail("Prod*", "INVALID_RECORD", topic="o?her", client="app-*", times=None)
    assert talk.code_of(talk.produce("other", client_id="test")) == 0
    assert talk.code_of(talk.produce(TOPIC, client_id="app-1")) == 0
    assert talk.code_of(talk.produce("other", client_id="app-1")) == ErrorCode.INVALID_RECORD


def test_emulated_releases_fail_too() -> None:
    """Whose APIs are not those of today."""
    talk = FaultyConversation()
    talk.broker = type(talk.broker).open(
        talk.host, "/old", {"log.message.format.version": "0.10.2"}, emulated_release="0.10.2"
    )
    make_faulty(talk.broker, talk.faults)
    talk.connection = talk.broker.connect("127.0.0.1")
    talk.faults.fail("Metadata", "INVALID_TOPIC_EXCEPTION")
    talk.create(TOPIC)
    told = talk.ask("Metadata", 1, topics=[{"name": TOPIC}])
    assert [topic["error_code"] for topic in told["topics"]] == [ErrorCode.INVALID_TOPIC_EXCEPTION]
