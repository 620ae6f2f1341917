"""Heart beats as clients in Java, C++ and JavaScript write them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.rocketmq.clients.heartbeat import read_heartbeat, read_subscription
from logstore.compat.rocketmq.clients.subscriptions import (
    SubscriptionError,
    codes_of,
    subscription_to,
)


def _beat(consumer: dict[str, Any] | None = None, **members: Any) -> bytes:
    data: dict[str, Any] = {
        "clientID": "c@1",
        "producerDataSet": [],
        "consumerDataSet": [],
        **members,
    }
    if consumer is not None:
        data["consumerDataSet"] = [consumer]
    return json.dumps(data).encode()


def test_an_object_in_place_of_a_list() -> None:
    """It is a list of one for fastjson, and so for a real broker."""
    consumer = {"groupName": "g", "subscriptionDataSet": {"topic": "t", "subString": "*"}}
    beat = read_heartbeat(_beat(producerDataSet={"groupName": "p"}, consumerDataSet=consumer))
    assert beat.producer_groups == ("p",)
    assert [one.group for one in beat.consumers] == ["g"]
    assert [one.topic for one in beat.consumers[0].subscriptions] == ["t"]


def test_a_heart_beat_of_java() -> None:
    """Groups, enums by name, codes of tags and the fingerprint come out as they were written."""
    subscription = {
        "classFilterMode": False, "codeSet": [97, 98], "expressionType": "TAG",
        "subString": "a||b", "subVersion": 7, "tagsSet": ["a", "b"], "topic": "t",
    }  # fmt: skip
    beat = read_heartbeat(
        _beat(
            {
                "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
                "consumeType": "CONSUME_ACTIVELY",
                "groupName": "g",
                "messageModel": "BROADCASTING",
                "subscriptionDataSet": [subscription],
                "unitMode": True,
            },
            producerDataSet=[{"groupName": "p"}],
            heartbeatFingerprint=11,
            withoutSub=True,
        )
    )
    consumer = beat.consumers[0]
    assert (beat.client_id, beat.producer_groups) == ("c@1", ("p",))
    assert (beat.fingerprint, beat.is_without_subscriptions) == (11, True)
    assert (consumer.group, consumer.consume_type) == ("g", "CONSUME_ACTIVELY")
    assert (consumer.message_model, consumer.is_unit_mode) == ("BROADCASTING", True)
    assert consumer.consume_from_where == "CONSUME_FROM_FIRST_OFFSET"
    found = consumer.subscriptions[0]
    assert (found.topic, found.sub_version, found.codes) == ("t", 7, frozenset({97, 98}))
    assert found.to_json() == subscription


def test_a_heart_beat_of_c_plus_plus() -> None:
    """Enums are numbers, the version is text and codes are left out: all are understood."""
    beat = read_heartbeat(
        _beat(
            {
                "consumeFromWhere": 4,
                "consumeType": 1,
                "groupName": "g",
                "messageModel": 1,
                "subscriptionDataSet": [
                    {"subString": "a || b", "subVersion": "1700000000000", "topic": "t"}
                ],
            }
        )
    )
    consumer = beat.consumers[0]
    assert consumer.consume_type == "CONSUME_PASSIVELY"
    assert consumer.message_model == "CLUSTERING"
    assert consumer.consume_from_where == "CONSUME_FROM_FIRST_OFFSET"
    found = consumer.subscriptions[0]
    assert (found.codes, found.sub_version) == (codes_of(["a", "b"]), 1_700_000_000_000)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"clientID":""}',
        b'{"clientID":"c","consumerDataSet":[1]}',
        b'{"clientID":"c","consumerDataSet":[{"unitMode":true}]}',
        b'{"clientID":"c","producerDataSet":[{"groupName":null}]}',
    ],
)
def test_what_is_no_heart_beat_is_told(body: bytes) -> None:
    """A body that is none is an error that says so, not a fault in the reader."""
    with pytest.raises(ValueError, match=r"."):
        read_heartbeat(body)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("CONSUME_POP", "CONSUME_POP"),
        ("consume_pop", "CONSUME_POP"),
        ("Consume-Pop", "CONSUME_POP"),
        ("CONSUMEPOP", "CONSUME_POP"),
        ("CONSUME_POP ", None),
        (2, "CONSUME_POP"),
        (1.5, "CONSUME_PASSIVELY"),
        ("1", "CONSUME_PASSIVELY"),
        (" 1", None),
        ("9", None),
        ("x", None),
        ("", None),
        (None, None),
    ],
)
def test_a_name_out_of_few_is_read_as_by_fastjson(told: Any, expected: str | None) -> None:
    """In any spelling, by its number, or not at all; the group is one of no kind then."""
    beat = read_heartbeat(_beat({"groupName": "g", "consumeType": told}))
    assert beat.consumers[0].consume_type == expected
    assert beat.consumers[0].message_model is None


@pytest.mark.parametrize("told", [3, -1, 1 << 40, True, [], {}, ["CONSUME_POP"]])
def test_a_name_out_of_few_that_cannot_be_is_refused(told: Any) -> None:
    """The number of none, and what is neither a name nor a number."""
    with pytest.raises(ValueError, match=r"a heart beat has"):
        read_heartbeat(_beat({"groupName": "g", "consumeType": told}))


@given(
    st.binary(max_size=60)
    | st.recursive(
        st.none() | st.integers() | st.text(),
        lambda c: (
            st.lists(c)
            | st.dictionaries(st.sampled_from(["clientID", "consumerDataSet", "groupName"]), c)
        ),
    ).map(lambda v: json.dumps(v).encode())
)
def test_any_body_is_read_or_refused(body: bytes) -> None:
    """Whatever stands in a heart beat, reading it ends with one, or with an error about it."""
    try:
        beat = read_heartbeat(body)
    except (ValueError, TypeError):
        return
    assert beat.client_id


def test_tags_of_a_subscription() -> None:
    """Tags stand between bars, without spaces around them; the broker knows them by their hash."""
    found = subscription_to("t", " TagA ||TagB|| ", None)
    assert found.tags == ("TagA", "TagB")
    assert found.codes == frozenset({2598919, 2598920})
    assert found.tag_filter is not None
    assert found.tag_filter.matches_unit(2598919, None)
    assert not found.tag_filter.matches_unit(1, None)


@pytest.mark.parametrize(("text", "passes"), [("", False), ("*", True), (None, True)])
def test_an_empty_expression_of_a_heart_beat(text: str | None, passes: bool) -> None:
    """Is what it is: without tags it lets nothing through. None at all lets everything through."""
    found = read_subscription({"topic": "t", "subString": text, "codeSet": [], "tagsSet": []})
    assert found.sub_string == ("*" if text is None else text)
    assert (found.tag_filter is None or found.tag_filter.matches_unit(1, None)) is passes


@pytest.mark.parametrize("text", [None, "", "*"])
def test_a_subscription_to_everything(text: str | None) -> None:
    """No expression at all, and a star, take every message without a look at its tags."""
    found = subscription_to("t", text, "TAG")
    assert (found.sub_string, found.tag_filter, found.is_by_tag) == ("*", None, True)


@pytest.mark.parametrize(("text", "kind"), [("||", None), ("", "SQL92")])
def test_a_subscription_to_nothing_is_refused(text: str, kind: str | None) -> None:
    """Bars without tags, and an expression that is empty, are errors."""
    with pytest.raises(SubscriptionError):
        subscription_to("t", text, kind)
