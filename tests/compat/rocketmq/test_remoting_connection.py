"""Remoting connections: requests do not wait for each other, and one read gives one write."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from logstore.compat.connection import Chunk
from logstore.compat.rocketmq.connection import (
    AnswerTimeoutError,
    Channel,
    PeerGoneError,
    RemotingConnection,
)
from logstore.compat.rocketmq.wire.codes import RequestCode
from logstore.compat.rocketmq.wire.refusals import RefusedError
from logstore.compat.rocketmq.wire.remoting import (
    FRAME_BYTES_MAX,
    Command,
    Response,
    encode_response,
)
from logstore.compat.waiting import Later
from tests.compat.rocketmq.frames import BINARY, JSON, answers, request, split
from tests.compat.rocketmq.scripted_remoting import PEER_HOST, PEER_PORT, ScriptedRemoting

SEND, PULL, BEAT = RequestCode.SEND_MESSAGE, RequestCode.PULL_MESSAGE, RequestCode.HEART_BEAT


def echo(service: Any, channel: Channel, asked: Command) -> Response:
    """Answer with the body of the request."""
    return Response(0, body=bytes(asked.body))


class Waiting:
    """A handler whose answers come when the test says so."""

    def __init__(self) -> None:
        self.requests: list[Command] = []
        self.laters: list[Later[Response]] = []

    def __call__(self, _: Any, __: Channel, asked: Command) -> Later[Response]:
        """Take the request."""
        self.requests.append(asked)
        self.laters.append(Later())
        return self.laters[-1]


class Writes:
    """Stands where the driver writes what a connection has to send."""

    def __init__(self, connection: RemotingConnection) -> None:
        self.connection = connection
        self.sent: list[list[Chunk]] = []
        connection.on_output = self

    def __call__(self) -> None:
        """Take what there is."""
        self.sent.append(self.connection.output)
        self.connection.output = []


def opaques(chunks: list[Chunk]) -> list[int]:
    """Return which requests are answered, in order."""
    return [answer.opaque for answer in answers(chunks)]


class TestOrder:
    """Answers come when they are known."""

    def test_a_request_that_waits_does_not_hold_up_others(self) -> None:
        """A held pull, then a send on the same connection: the send is answered first."""
        waiting = Waiting()
        connection = ScriptedRemoting({PULL: waiting, SEND: echo}).connect()
        writes = Writes(connection)
        sent = connection.feed(request(PULL, opaque=1) + request(SEND, body=b"x", opaque=2))
        assert opaques(sent) == [2]
        assert not connection.is_waiting
        waiting.laters[0].answer(Response(19, "later"))
        (late,) = writes.sent
        assert opaques(late) == [1]

    def test_late_answers_in_any_order(self) -> None:
        """Each carries the opaque of its own request."""
        waiting = Waiting()
        connection = ScriptedRemoting({PULL: waiting}).connect()
        writes = Writes(connection)
        connection.feed(b"".join(request(PULL, opaque=number) for number in range(4)))
        for number in (2, 0, 3, 1):
            waiting.laters[number].answer(Response(0))
        assert [opaques(sent) for sent in writes.sent] == [[2], [0], [3], [1]]

    def test_many_frames_of_one_read_are_answered_in_one_write(self) -> None:
        """And the service finishes them together, once."""
        service = ScriptedRemoting({SEND: echo})
        connection = service.connect()
        writes = Writes(connection)
        frames = b"".join(request(SEND, body=b"%d" % number, opaque=number) for number in range(50))
        sent = connection.feed(frames)
        assert [answer.body for answer in answers(sent)] == [b"%d" % n for n in range(50)]
        assert (writes.sent, service.reads) == ([], 1)

    def test_answers_of_one_event_go_out_in_one_write(self) -> None:
        """A flush that many wait for: whoever answers them gathers what is said."""
        waiting = Waiting()
        service = ScriptedRemoting({SEND: waiting})
        connection = service.connect()
        writes = Writes(connection)
        connection.feed(b"".join(request(SEND, opaque=number) for number in range(64)))
        with service.outbox.gathering():
            for later in waiting.laters:
                later.answer(Response(0))
        assert [opaques(sent) for sent in writes.sent] == [list(range(64))]

    def test_what_a_read_says_to_another_connection(self) -> None:
        """A consumer's held pulls are answered by a producer's read, in one write."""
        waiting = Waiting()

        def send(service: Any, channel: Channel, asked: Command) -> Response:
            waiting.laters.pop(0).answer(Response(0))
            return Response(0)

        service = ScriptedRemoting({PULL: waiting, SEND: send})
        consumer, producer = service.connect(), service.connect()
        writes = Writes(consumer)
        consumer.feed(request(PULL, opaque=1) + request(PULL, opaque=2))
        sent = producer.feed(request(SEND, opaque=7) + request(SEND, opaque=8))
        assert opaques(sent) == [7, 8]
        assert [opaques(sent) for sent in writes.sent] == [[1, 2]]

    def test_an_answer_while_the_same_connection_is_served(self) -> None:
        """A send wakes a pull of its own connection: both answers go with the read's."""
        waiting = Waiting()

        def send(service: Any, channel: Channel, asked: Command) -> Response:
            waiting.laters[0].answer(Response(0))
            return Response(0)

        connection = ScriptedRemoting({PULL: waiting, SEND: send}).connect()
        writes = Writes(connection)
        sent = connection.feed(request(PULL, opaque=1) + request(SEND, opaque=2))
        assert (opaques(sent), writes.sent) == ([1, 2], [])


class TestSplits:
    """Bytes come as the network likes."""

    @pytest.mark.parametrize("serializer", [JSON, BINARY])
    @pytest.mark.parametrize("chunk_bytes", [1, 3, 7, 64, 1000])
    def test_every_size_of_read(self, chunk_bytes: int, serializer: int) -> None:
        """The answers are the same."""
        stream = b"".join(
            request(SEND, {"n": number}, b"b" * number, opaque=number, serializer=serializer)
            for number in range(30)
        )
        connection = ScriptedRemoting({SEND: echo}).connect()
        sent: list[Chunk] = []
        for start in range(0, len(stream), chunk_bytes):
            sent += connection.feed(stream[start : start + chunk_bytes])
        assert [answer.body for answer in answers(sent)] == [b"b" * n for n in range(30)]

    def test_the_largest_frame(self) -> None:
        """16 MiB with its length are taken, one byte more closes the connection."""
        empty = len(request(SEND))
        connection = ScriptedRemoting({SEND: echo}).connect()
        body = b"x" * (FRAME_BYTES_MAX - empty)
        (answer,) = answers(connection.feed(request(SEND, body=body)))
        assert answer.body == body
        assert connection.feed(request(SEND, body=body + b"x")) == []
        assert connection.is_closing


class TestRefusals:
    """What cannot be served."""

    def test_an_unknown_code(self) -> None:
        """Is answered with Java's words, and the connection goes on."""
        connection = ScriptedRemoting({SEND: echo}).connect()
        sent = connection.feed(request(9999, opaque=4) + request(SEND, opaque=5))
        refusal, answer = answers(sent)
        assert (refusal.code, refusal.remark) == (3, " request type 9999 not supported")
        assert (refusal.opaque, answer.opaque) == (4, 5)

    @pytest.mark.parametrize("garbage", [b"\0\0\0\4\0\0\0\5", b"\xff" * 20, b"\0\0\0\6\7\0\0\2{}"])
    def test_what_is_no_frame_closes_the_connection(self, garbage: bytes) -> None:
        """What came before it is answered, what follows is not read."""
        connection = ScriptedRemoting({SEND: echo}).connect()
        sent = connection.feed(request(SEND, opaque=1) + garbage + request(SEND, opaque=2))
        assert opaques(sent) == [1]
        assert connection.is_closing

    def test_a_refusal_is_an_answer(self) -> None:
        """Code, remark and fields of the error; now or later."""

        def refuse(service: Any, channel: Channel, asked: Command) -> Response:
            raise RefusedError(25, "not latest", {})

        waiting = Waiting()
        connection = ScriptedRemoting({SEND: refuse, PULL: waiting}).connect()
        writes = Writes(connection)
        (answer,) = answers(connection.feed(request(SEND)))
        assert (answer.code, answer.remark, answer.fields) == (25, "not latest", {})
        connection.feed(request(PULL))
        waiting.laters[0].fail(RefusedError(14, "gone"))
        (late,) = answers(writes.sent[0])
        assert (late.code, late.remark, late.fields) == (14, "gone", None)

    def test_a_fault_of_ours_is_answered_and_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        """SYSTEM_ERROR with what went wrong; everybody else is served on."""

        def fail(service: Any, channel: Channel, asked: Command) -> Response:
            raise KeyError("x")

        connection = ScriptedRemoting({SEND: fail, BEAT: echo}).connect()
        with caplog.at_level(logging.ERROR):
            refusal, answer = answers(connection.feed(request(SEND) + request(BEAT)))
        assert (refusal.code, refusal.remark) == (1, "KeyError: 'x'")
        assert answer.code == 0
        assert "request 10 of 192.0.2.7:40123 failed" in caplog.text

    def test_a_fault_after_the_requests_closes_the_connection(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """What could not be finished is not acknowledged."""
        service = ScriptedRemoting({SEND: echo})

        def fail() -> None:
            raise ValueError("dispatch")

        service.requests_served = fail  # type: ignore[method-assign]
        connection = service.connect()
        connection.feed(request(SEND))
        assert connection.is_closing
        assert "dispatch" in caplog.text


class TestOneway:
    """Requests that want no answer."""

    def test_no_answer_of_any_kind(self) -> None:
        """Neither an answer nor a refusal, neither at once nor later; the handler is asked."""
        waiting = Waiting()

        def fail(service: Any, channel: Channel, asked: Command) -> Response:
            raise RefusedError(1, "no")

        service = ScriptedRemoting({PULL: waiting, SEND: echo, BEAT: fail})
        connection = service.connect()
        writes = Writes(connection)
        codes = (PULL, SEND, BEAT, 9999)
        assert connection.feed(b"".join(request(code, flag=2) for code in codes)) == []
        waiting.laters[0].answer(Response(0))
        assert (writes.sent, len(waiting.requests)) == ([], 1)

    def test_a_handler_may_answer_nothing(self) -> None:
        """None is no answer, for whatever request."""

        def ignore(service: Any, channel: Channel, asked: Command) -> None:
            """Take the request."""

        connection = ScriptedRemoting({SEND: ignore}).connect()
        assert connection.feed(request(SEND)) == []


class TestRawHandlers:
    """Those who write frames by themselves."""

    def test_frames_go_out_as_they_are(self) -> None:
        """Now, later, and not at all for one-way requests."""
        laters: list[Later[list[Chunk]]] = []

        def send(service: Any, channel: Channel, asked: Command) -> list[Chunk]:
            return encode_response(asked, Response(0, "raw"))

        def pull(service: Any, channel: Channel, asked: Command) -> Later[list[Chunk]]:
            laters.append(Later())
            return laters[-1]

        connection = ScriptedRemoting(raw_handles={SEND: send, PULL: pull}).connect()
        writes = Writes(connection)
        stream = request(SEND, flag=2) + request(SEND, opaque=3) + request(PULL)
        (answer,) = answers(connection.feed(stream))
        assert (answer.opaque, answer.remark) == (3, "raw")
        laters[0].answer([b"bytes", b" of a frame"])
        assert writes.sent == [[b"bytes", b" of a frame"]]


class TestHandlersAtFirstUse:
    """Handlers are imported when somebody asks."""

    def test_a_handler_is_imported_once(self) -> None:
        """The first request of its code is served as all others."""
        from logstore.compat.rocketmq.name_server.name_server import HANDLERS
        from logstore.compat.rocketmq.registry import Handler

        known = HANDLERS[RequestCode.GET_ROUTEINFO_BY_TOPIC]
        fresh = Handler(known.code, known.module.rpartition(".")[0])
        service = ScriptedRemoting()
        service.handlers[known.code] = fresh
        assert fresh.handle is None
        (answer,) = answers(service.connect().feed(request(known.code)))
        assert fresh.handle is not None
        assert answer.code == 1, "the scripted service is no name server"


class TestSpeakingUnasked:
    """Servers tell and ask, too."""

    def test_the_channel_knows_the_peer(self) -> None:
        """Address, and its parts; IPv6 in brackets."""
        service = ScriptedRemoting()
        channel = service.connect().channel
        assert (channel.host, channel.port) == (PEER_HOST, PEER_PORT)
        assert channel.address == "192.0.2.7:40123"
        assert RemotingConnection(service, "2001:db8::1", 5).channel.address == "[2001:db8::1]:5"

    def test_telling(self) -> None:
        """A one-way request goes out at once; each has an opaque of its own."""
        connection = ScriptedRemoting().connect()
        writes = Writes(connection)
        for group in ("g", "h"):
            connection.channel.tell(40, {"consumerGroup": group})
        told = [answers(sent)[0] for sent in writes.sent]
        assert [(one.code, one.flag, one.fields) for one in told] == [
            (40, 2, {"consumerGroup": "g"}),
            (40, 2, {"consumerGroup": "h"}),
        ]
        assert told[0].opaque != told[1].opaque

    def test_asking(self) -> None:
        """The answer finds its question by the opaque, whatever else comes between."""
        connection = ScriptedRemoting({SEND: echo}).connect()
        writes = Writes(connection)
        found: list[Command] = []
        for number in range(2):
            connection.channel.ask(326, {}, b"%d" % number, timeout_ms=100).then(found.append)
        first, second = (answers(sent)[0].opaque for sent in writes.sent)
        sent = connection.feed(
            request(0, body=b"to second", opaque=second, flag=1)
            + request(SEND, opaque=first)
            + request(0, body=b"to first", opaque=first, flag=1)
            + request(0, body=b"to nobody", opaque=first, flag=1)
        )
        assert opaques(sent) == [first]
        assert [bytes(answer.body) for answer in found] == [b"to second", b"to first"]
        connection.feed(request(SEND, body=b"?" * 500))
        assert bytes(found[0].body) == b"to second", "what is kept is a copy"

    def test_no_answer_in_time(self) -> None:
        """The question fails; an answer that comes too late is dropped."""
        service = ScriptedRemoting()
        connection = service.connect()
        writes = Writes(connection)
        failures: list[Exception] = []
        connection.channel.ask(326, timeout_ms=100).then(lambda _: None, failures.append)
        service.clock.advance(101)
        service.timers.run()
        assert [type(error) for error in failures] == [AnswerTimeoutError]
        opaque = answers(writes.sent[0])[0].opaque
        assert connection.feed(request(0, opaque=opaque, flag=1)) == []

    def test_a_peer_that_goes_away(self) -> None:
        """Open questions fail at once, new ones too; the service is told; nothing more is sent."""
        service = ScriptedRemoting({PULL: (waiting := Waiting())})
        connection = service.connect()
        writes = Writes(connection)
        failures: list[Exception] = []
        connection.channel.ask(326, timeout_ms=100).then(lambda _: None, failures.append)
        connection.feed(request(PULL))
        connection.lost()
        assert (service.gone, connection.channel.is_open) == ([connection.channel], False)
        connection.channel.ask(326, timeout_ms=100).then(lambda _: None, failures.append)
        assert [type(error) for error in failures] == [PeerGoneError] * 2
        waiting.laters[0].answer(Response(0))
        connection.channel.tell(40)
        assert len(writes.sent) == 1
        assert (connection.output, service.timers.next_due_ms()) == ([], None)

    def test_hanging_up(self) -> None:
        """What was said before still goes out; nothing that comes after is served."""
        connection = ScriptedRemoting({SEND: echo}).connect()
        writes = Writes(connection)
        connection.channel.tell(40)
        connection.channel.hang_up()
        assert connection.is_closing
        assert len(split(b"".join(bytes(chunk) for sent in writes.sent for chunk in sent))) == 1  # type: ignore[arg-type]
        assert connection.feed(request(SEND)) == []


class TestMemoryOfRequests:
    """Bodies are views of the connection's memory."""

    def test_a_request_that_waits_keeps_no_memory(self) -> None:
        """Its body is gone when the handler has returned."""
        waiting = Waiting()
        connection = ScriptedRemoting({PULL: waiting}).connect()
        connection.feed(request(PULL, {"a": "b"}, b"x" * 1000))
        assert (len(waiting.requests[0].body), waiting.requests[0].ext_fields) == (0, {"a": "b"})
