"""Frames: taken apart without a copy, and put together as Java's servers do."""

from __future__ import annotations

import pytest
from typing_extensions import Buffer

from logstore.compat.connection import Chunk
from logstore.compat.rocketmq.wire.binary_header import read_binary_header
from logstore.compat.rocketmq.wire.remoting import (
    Command,
    MalformedFrameError,
    Response,
    decode_command,
    encode_request,
    encode_response,
)
from logstore.segment import Extent
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.frames import BINARY, JSON, answers, command, framed, joined, request


def asked(serializer: int = JSON, opaque: int = 9) -> Command:
    """Return a request to be answered."""
    return command(request(10, {"a": "b"}, b"body", opaque=opaque, serializer=serializer))


class TestDecode:
    """Frames of clients."""

    @pytest.mark.parametrize("serializer", [JSON, BINARY])
    def test_a_request(self, serializer: int) -> None:
        """All parts of it, and the form that its answer must have."""
        frame = request(310, {"a": "g", "e": 3}, b"hello", opaque=5, flag=2, serializer=serializer)
        found = command(frame)
        assert (found.code, found.opaque, found.flag, found.version) == (310, 5, 2, 513)
        assert found.ext_fields == {"a": "g", "e": "3"}
        assert (bytes(found.body), found.serializer) == (b"hello", serializer)
        assert (found.is_oneway, found.is_response) == (True, False)

    def test_the_body_is_a_view_of_the_frame(self) -> None:
        """Nothing is copied: what the memory holds later is seen."""
        memory = bytearray(request(10, {}, b"hello"))
        found = decode_command(memoryview(memory)[4:])
        memory[-5:] = b"HELLO"
        assert bytes(found.body) == b"HELLO"

    def test_a_frame_without_body(self) -> None:
        """Has an empty one."""
        assert len(command(request(34)).body) == 0

    @pytest.mark.parametrize(
        "frame",
        [
            b"", b"\0\0", b"\0\0\0\x05{}", b"\2\0\0\2{}", b"\xff\0\0\0", b"\0\0\0\2[]", b"\0\0\0\0",
            b"\1\0\0\5hello", b"\0\xff\xff\xff{}",
        ],
    )  # fmt: skip
    def test_what_is_no_command(self, frame: bytes) -> None:
        """Is refused as a whole."""
        with pytest.raises(MalformedFrameError, match="no remoting command"):
            decode_command(memoryview(frame))


class TestEncodeResponse:
    """Frames of servers."""

    def test_in_the_form_of_the_request(self) -> None:
        """JSON is answered in JSON, binary in binary, with the opaque of the request."""
        for serializer in (JSON, BINARY):
            (answer,) = answers(encode_response(asked(serializer), Response(17, "no", {"k": "v"})))
            assert (answer.serializer, answer.opaque, answer.flag) == (serializer, 9, 1)
            assert (answer.code, answer.remark, answer.fields) == (17, "no", {"k": "v"})

    def test_the_whole_frame_of_java(self) -> None:
        """Byte for byte what 5.5.0 answers to a topic that is made."""
        frame = joined(encode_response(asked(opaque=3), Response(0, "not set any response code")))
        header = (
            b'{"code":0,"flag":1,"language":"JAVA","opaque":3,"remark":"not set any response code",'
            b'"serializeTypeCurrentRPC":"JSON","version":513}'
        )
        assert frame == framed(header)

    def test_fields_stand_as_in_a_hash_map(self) -> None:
        """The order is that of Java's map, not that of the handler."""
        fields = {
            "nextBeginOffset": "4", "minOffset": "0", "maxOffset": "4", "suggestWhichBrokerId": "0",
            "topicSysFlag": "0", "groupSysFlag": "0",
        }  # fmt: skip
        (answer,) = answers(encode_response(asked(), Response(19, "OFFSET_OVERFLOW_ONE", fields)))
        assert list(answer.fields or ()) == [
            "suggestWhichBrokerId", "groupSysFlag", "nextBeginOffset", "maxOffset", "minOffset",
            "topicSysFlag",
        ]  # fmt: skip

    def test_extra_fields_make_the_map_larger(self) -> None:
        """5.x makes room for 256 where fields are added by hand: another order."""
        fields = {"msgId": "m", "queueId": "1", "queueOffset": "7", "transactionId": "t"}
        extra = {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
        frame = encode_response(asked(), Response(0, None, fields, extra_fields=extra))
        assert list(answers(frame)[0].fields or ()) == [
            "queueId", "transactionId", "msgId", "TRACE_ON", "MSG_REGION", "queueOffset",
        ]  # fmt: skip

    def test_binary_fields_stand_as_the_handler_has_them(self) -> None:
        """Headers that encode themselves have an order of their own, extra fields come last."""
        fields = {"msgId": "m", "queueId": "1", "queueOffset": "7"}
        response = Response(0, None, fields, extra_fields={"TRACE_ON": "true"})
        (answer,) = answers(encode_response(asked(BINARY), response))
        assert list(answer.fields or ()) == ["msgId", "queueId", "queueOffset", "TRACE_ON"]

    def test_bodies(self) -> None:
        """Bytes, views, runs of files, and several of them in a row; small bytes join the head."""
        host = SimulatedHost()
        host.fs.make_directory("/d")
        file = host.fs.open("/d/f", create=True)
        file.write(0, b"..from a file..")
        extent = Extent(file, 2, 11)
        one_after_the_other: list[Chunk] = [b"one ", memoryview(b"two "), extent]
        cases: list[tuple[Buffer | list[Chunk], bytes]] = [
            (b"plain", b"plain"),
            (bytearray(b"array"), b"array"),
            (memoryview(b"view"), b"view"),
            (one_after_the_other, b"one two from a file"),
            ([], b""),
            (b"x" * 100_000, b"x" * 100_000),
        ]
        for body, expected in cases:
            (answer,) = answers(encode_response(asked(), Response(0, body=body)))
            assert answer.body == expected
        assert len(encode_response(asked(), Response(0, body=b"plain"))) == 1
        assert encode_response(asked(), Response(0, body=[extent]))[1] is extent


class TestEncodeRequest:
    """What servers ask of clients."""

    def test_the_whole_frame_of_java(self) -> None:
        """Byte for byte what 5.5.0 says when the consumers of a group change."""
        frame = encode_request(40, 52, {"consumerGroup": "g"}, is_oneway=True)
        assert frame == framed(
            b'{"code":40,"extFields":{"consumerGroup":"g"},"flag":2,"language":"JAVA","opaque":52,'
            b'"serializeTypeCurrentRPC":"JSON","version":513}'
        )

    def test_a_question_with_a_body(self) -> None:
        """Flag 0: an answer is awaited."""
        found = command(encode_request(326, 7, {"b": "x", "a": "y"}, b"hello"))
        assert (found.code, found.opaque, found.flag) == (326, 7, 0)
        assert (found.ext_fields, bytes(found.body)) == ({"a": "y", "b": "x"}, b"hello")


def test_high_codes_are_answered_in_binary_too() -> None:
    """The answer's own code is small; what the request's code was does not matter."""
    frame = joined(encode_response(asked(BINARY), Response(0)))
    assert read_binary_header(frame[8:])[:3] == (0, 9, 1)
