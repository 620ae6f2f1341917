"""Whatever bytes arrive: an answer or a closed connection, never an exception, never silence."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from logstore.compat.rocketmq.name_server.registration import RegistrationError, read_registration
from logstore.compat.rocketmq.wire.binary_header import read_binary_header
from logstore.compat.rocketmq.wire.json_header import read_json_header
from logstore.compat.rocketmq.wire.remoting import (
    MalformedFrameError,
    Response,
    decode_command,
    encode_response,
)
from tests.compat.rocketmq.frames import BINARY, JSON, answers, command, framed, joined, request
from tests.compat.rocketmq.name_server.conversation import Conversation
from tests.compat.rocketmq.scripted_remoting import ScriptedRemoting
from tests.damage import damaged
from tests.segments.rocketmq.golden_case import golden_cases

#: how many damaged copies of each recorded frame are read
COPIES = 20
JSON_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def recorded(name: str) -> list[bytes]:
    """Return the frames of a kind that real clients and servers sent, without their lengths."""
    return [
        bytes.fromhex(line["hex"])[4:]
        for case in golden_cases("wire", "wire-cpp")
        for transcript in case.transcripts.values()
        for line in transcript
        if line["serializer"] == name
    ]


@given(st.binary(max_size=300))
@example(b"\x00\x00\x00\x00")
def test_any_bytes_as_a_frame(data: bytes) -> None:
    """Are a command, or refused as none."""
    try:
        found = decode_command(memoryview(data))
    except MalformedFrameError:
        return
    assert all(type(value) is str for value in found.ext_fields.values())


@given(st.binary(max_size=300))
def test_any_bytes_as_a_binary_header(data: bytes) -> None:
    """Are a header, or a ValueError."""
    try:
        fields = read_binary_header(data)[6]
    except ValueError:
        return
    assert all(fields.values())


@given(st.dictionaries(
    st.sampled_from(["code", "opaque", "flag", "language", "version", "remark", "extFields", "x"]),
    JSON_VALUE,
))  # fmt: skip
@example({"code": {}, "opaque": {}, "flag": {}, "version": {}})
def test_any_json_as_a_header(content: dict[str, object]) -> None:
    """Is a header with text for fields, or a ValueError."""
    try:
        header = read_json_header(json.dumps(content).encode())
    except ValueError:
        return
    assert all(isinstance(value, int) for value in (*header[:3], header[4]))
    assert isinstance(header[3], str)
    assert all(type(value) is str for value in header[6].values())


@pytest.mark.parametrize("serializer", ["JSON", "ROCKETMQ"])
def test_damaged_frames_of_real_peers(serializer: str) -> None:
    """Thousands of them, changed at random: each is a command or is refused."""
    frames = recorded(serializer)
    assert len(frames) > 50
    rng = random.Random(7)
    read = refused = 0
    for frame in frames:
        decode_command(memoryview(frame))
        for _ in range(COPIES):
            try:
                decode_command(memoryview(damaged(frame, rng)))
                read += 1
            except MalformedFrameError:
                refused += 1
    assert read > COPIES
    assert refused > COPIES


@pytest.mark.parametrize("serializer", [JSON, BINARY])
def test_a_connection_answers_or_closes(serializer: int) -> None:
    """A damaged stream: requests before the damage are answered, nobody is left in the dark."""
    rng = random.Random(serializer)
    good = request(10, {"a": "b" * 50, "c": "d"}, b"body", serializer=serializer)
    for _ in range(2000):
        service = ScriptedRemoting()
        connection = service.connect()
        sent = connection.feed(good + framed_damage(good, rng) + good)
        found = answers(sent)
        assert found, "the first request is whole"
        assert {answer.code for answer in found} <= {0, 3}
        assert connection.is_closing or len(found) >= 1


def framed_damage(frame: bytes, rng: random.Random) -> bytes:
    """Return a frame that is damaged within, or whose length is."""
    payload = damaged(frame[4:], rng)
    if rng.randrange(4) == 0:
        return damaged(frame, rng)
    return len(payload).to_bytes(4, "big") + payload


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_as_a_registration(body: bytes, is_compressed: bool) -> None:
    """Are one, or refused."""
    try:
        found = read_registration(body, is_compressed=is_compressed, version=513, now_ms=1)
    except RegistrationError:
        return
    assert not found.topics


def test_a_name_server_survives_whatever_is_asked() -> None:
    """Every code with every field missing, wrong or strange: an answer, and life goes on."""
    conversation = Conversation()
    conversation.register()
    rng = random.Random(5)
    names = [
        "topic", "brokerName", "brokerAddr", "clusterName", "brokerId", "namespace", "key",
        "value", "cluster", "haServerAddr", "bodyCrc32", "compressed",
    ]  # fmt: skip
    values: list[object] = ["", "x", "-1", 7, True, None, "9" * 40, [1], "\x00", "ö"]
    for code in conversation.server.handlers:
        for _ in range(40):
            fields = {name: rng.choice(values) for name in rng.sample(names, rng.randrange(13))}
            body = rng.choice([b"", b"{}", b"[]", b"x", b'{"queueDatas":[{}]}', rng.randbytes(30)])
            answer = conversation.ask(code, fields, body)
            assert answer.remark is None or isinstance(answer.remark, str)
    conversation.register(name="still", address="192.0.2.9:1")
    assert conversation.route("t").code == 0


def test_an_answer_of_every_kind_is_read_back() -> None:
    """What encode_response writes, decode_command reads."""
    for serializer in (JSON, BINARY):
        asked = command(request(10, {}, opaque=77, serializer=serializer))
        frame = joined(encode_response(asked, Response(5, "r", {"a": "b"}, b"body")))
        found = decode_command(memoryview(frame)[4:])
        assert (found.code, found.opaque, found.remark) == (5, 77, "r")
        assert (found.ext_fields, bytes(found.body)) == ({"a": "b"}, b"body")
        assert found.is_response


def test_an_empty_frame_closes() -> None:
    """There is no header of no bytes."""
    connection = ScriptedRemoting().connect()
    assert connection.feed(framed(b"")) == []
    assert connection.is_closing
