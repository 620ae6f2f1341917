"""Handles, checkpoints and acknowledgements: written as Java does, read whatever comes."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.rocketmq.pop.checkpoints import (
    Ack,
    Checkpoint,
    CheckpointError,
    decode_ack,
    decode_checkpoint,
)
from logstore.compat.rocketmq.pop.handles import (
    Handle,
    HandleError,
    PoppedQueues,
    handle_text,
    parse_handle,
)
from logstore.compat.rocketmq.pop.retry_topics import (
    kind_of,
    normal_topic,
    pop_retry_topic,
    topic_of_kind,
)

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
_FIELDS = st.dictionaries(
    st.sampled_from(["t", "c", "q", "so", "pt", "it", "bn", "d", "n", "bm", "sp", "ao", "aol"]),
    _JSON,
)

#: what a real broker (5.5.0) put into its revive topic
REAL = (
    b'{"bm":0,"bn":"broker-a","c":"pg","d":[0,1,2],"it":5000,"n":3,"pt":1795467071684,"q":0,'
    b'"reviveTime":1795467076684,"ro":0,"so":0,"sp":false,"t":"pt1795467071"}'
)


def test_a_real_checkpoint() -> None:
    """What a real broker wrote is read, and written again byte by byte."""
    checkpoint = decode_checkpoint(REAL)
    assert checkpoint.encoded() == REAL
    assert checkpoint.unique_key == "pt1795467071@0@0@pg@1795467071684@broker-a@ck"
    assert checkpoint.open_offsets() == [0, 1, 2]
    checkpoint.ack(1)
    checkpoint.ack(7)
    assert checkpoint.open_offsets() == [0, 2]
    assert checkpoint.revive_time_ms == 1795467076684


def test_a_checkpoint_without_differences() -> None:
    """Old checkpoints say how many messages there are, and they follow each other."""
    checkpoint = decode_checkpoint(b'{"t":"t","c":"g","so":5,"n":3,"bm":2}')
    assert checkpoint.open_offsets() == [5, 7]


@pytest.mark.parametrize("is_batch", [False, True])
def test_acknowledgements(*, is_batch: bool) -> None:
    """An acknowledgement names the checkpoint that it belongs to."""
    ack = Ack("t", "g", 1, 10, 99, "b", [12, 14] if is_batch else [12], is_batch)
    again = decode_ack(ack.encoded(), is_batch=is_batch)
    assert again == ack
    assert again.key == Checkpoint("t", "g", 1, 10, 99, 5, "b", [2, 4]).key
    assert ack.tag == ("bAck" if is_batch else "ack")
    assert ack.unique_key == f"t@1@{-1 if is_batch else 12}@g@99@b@ack"


@given(_FIELDS.map(lambda fields: json.dumps(fields).encode()) | st.binary(max_size=40))
def test_any_body(body: bytes) -> None:
    """Whatever a message of the revive topic holds is read or refused."""
    with contextlib.suppress(CheckpointError):
        decode_checkpoint(body)
    for is_batch in (False, True):
        with contextlib.suppress(CheckpointError):
            decode_ack(body, is_batch=is_batch)


@given(st.text() | st.lists(st.integers().map(str), max_size=9).map(" ".join))
def test_any_handle(text: str) -> None:
    """Whatever a client shows is read or refused."""
    try:
        handle = parse_handle(text)
    except HandleError:
        return
    assert abs(handle.start_offset) <= 1 << 63


def test_handles() -> None:
    """A handle says what a real broker writes, and is read again."""
    text = handle_text(0, 1795467086916, 5000, 7, "%RETRY%pg_t", "broker-a", 0, 3)
    assert text == "0 1795467086916 5000 7 1 broker-a 0 3"
    assert parse_handle(text) == Handle(0, 1795467086916, 5000, 7, "broker-a")
    for flaw, what in (("1 2 3", "getReviveQid fail"), ("1 x 3 4 0 b", "For input string")):
        with pytest.raises(HandleError, match=what):
            parse_handle(flaw)


def test_what_an_answer_says() -> None:
    """The fields of an answer name kind, queue and offsets, with semicolons between."""
    queues = PoppedQueues()
    queues.add("t", 0, 1, [1, 2, 3])
    queues.add("%RETRY%pg_t", 0, 0, [0, 1])
    queues.count_message("t", 1, 5, 2)
    queues.count_queue("t", 1, 0)
    assert queues.fields(is_ordered=True) == {
        "startOffsetInfo": "0 0 1;1 0 0",
        "msgOffsetInfo": "0 0 1,2,3;1 0 0,1",
        "orderCountInfo": "0 qo1%5 2;0 1 0",
    }


def test_retry_topics() -> None:
    """Both kinds of retry topics lead back to the topic."""
    for is_v2, kind in ((False, "1"), (True, "2")):
        topic = pop_retry_topic("t_1", "g_2", is_v2=is_v2)
        assert (normal_topic(topic, "g_2"), kind_of(topic)) == ("t_1", kind)
        assert topic_of_kind("t_1", "g_2", kind) == topic
    assert (normal_topic("t", "g"), kind_of("t"), topic_of_kind("t", "g", "0")) == ("t", "0", "t")
    assert normal_topic("%RETRY%other_t", "g") == "%RETRY%other_t"
    with pytest.raises(ValueError, match="getRetry"):
        topic_of_kind("t", "g", "5")
