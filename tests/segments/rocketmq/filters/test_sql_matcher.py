"""Many stored messages held against an SQL92 filter come to the same as each one parsed."""

from __future__ import annotations

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from logstore.segments.rocketmq.filters.record_properties import properties_of_record
from logstore.segments.rocketmq.filters.sql_matcher import SqlMatcher, matches_sql
from logstore.segments.rocketmq.filters.sql_needles import needles_of
from logstore.segments.rocketmq.filters.sql_parser import compile_sql
from logstore.segments.rocketmq.messages.corrupt_message import CorruptMessageError
from logstore.segments.rocketmq.messages.message_layout import FIXED_BYTES, MessageVersion

CONDITIONS = (
    "a = '7'", "'7' = a", "a = 7", "a <> '7'", "a = b", "a = '\ufffd'",
    "a = ''", "a = TRUE", "a > 5", "5 >= a", "a < b", "a BETWEEN 3 AND 50", "a NOT BETWEEN 3 AND 5",
    "a IN ('7', 'x', 'é')", "a IN ('1','2','3','4','5','7')", "a NOT IN ('7')", "a IS NULL",
    "a IS NOT NULL", "a CONTAINS '7'", "a NOT STARTSWITH '7'", "a ENDSWITH 'é'", "NOT (a = '7')",
    "NOT (a > 5)", "a = -7", "-a = 7", "TRUE", "FALSE", "a", "aa = '7'", "b = 'x'",
)  # fmt: skip
JOINS = ("AND", "OR")
NAMES = (b"a", b"b", b"aa", b"A", b"", b"xa")
VALUES = (
    b"7",
    b"70",
    b"07",
    b"x",
    b"",
    b"true",
    b"-7",
    b"\xc3\xa9",
    b"\xff",
    b"a\x017",
    b"6" * 300,
)


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """Return conditions, alone and joined."""
    found = f"({draw(st.sampled_from(CONDITIONS))})"
    for _ in range(draw(st.integers(0, 3))):
        found += f" {draw(st.sampled_from(JOINS))} ({draw(st.sampled_from(CONDITIONS))})"
    return found


@st.composite
def pairs(draw: st.DrawFn) -> bytes:
    """Return a name and a value, which are no pair at times."""
    separator = draw(st.sampled_from([b"\x01", b"\x01", b"\x01", b""]))
    return draw(st.sampled_from(NAMES)) + separator + draw(st.sampled_from(VALUES))


def record(
    properties: bytes,
    body: bytes = b"",
    version: MessageVersion = MessageVersion.V1,
    hosts: int = 0,
) -> bytes:
    """Return a stored message; `hosts` says which of the two addresses are IPv6."""
    head = bytearray(FIXED_BYTES[hosts] - 4)
    head[4:8], head[39] = version.magic, hosts << 4
    topic = (1).to_bytes(version.topic_length_bytes, "big") + b"t"
    rest = struct.pack(">i", len(body)) + body + topic + struct.pack(">h", len(properties))
    head += rest + properties
    head[:4] = len(head).to_bytes(4, "big")
    return bytes(head)


@st.composite
def records(draw: st.DrawFn) -> bytes:
    """Return a stored message of any kind, whose body may look like properties."""
    end = draw(st.sampled_from([b"", b"\x02"]))
    return record(
        b"\x02".join(draw(st.lists(pairs(), max_size=4))) + end,
        draw(st.sampled_from([b"", b"a\x01", b"a\x017\x02", b"a\x01zz", b"x" * 5000])),
        draw(st.sampled_from(MessageVersion)),
        draw(st.integers(0, 3)),
    )


def is_match(expression: str, message: bytes) -> bool:
    """Ask with all of the properties parsed."""
    try:
        return matches_sql(compile_sql(expression), properties_of_record(message))
    except CorruptMessageError:
        return False


@given(
    expression=expressions(),
    messages=st.lists(
        st.tuples(records(), st.sampled_from([b"", b"gap", b"\x02a\x017\x02"])),
        min_size=1, max_size=12,
    ),
    lost=st.sampled_from([0, 0, 1, 100]),
)  # fmt: skip
@example(expression="a = '7'", messages=[(record(b"a\x017", b"a\x01zz"), b"")], lost=0)
@example(expression="a > 5", messages=[(record(b"b\x01x"), b"a\x017\x02")], lost=0)
def test_as_one_by_one(expression: str, messages: list[tuple[bytes, bytes]], lost: int) -> None:
    """Whatever stands in and between messages, those match that do when they are parsed."""
    data, starts, ends = b"", list[int](), list[int]()
    for message, gap in messages:
        starts.append(1000 + len(data))
        data += message
        ends.append(1000 + len(data))
        data += gap
    data = data[: ends[-1] - 1000 - lost]
    wanted = [
        index
        for index, (start, end) in enumerate(zip(starts, ends, strict=True))
        if is_match(expression, data[start - 1000 : end - 1000])
    ]
    matcher = SqlMatcher(compile_sql(expression))
    for _ in range(2):  # with what it knows by then, too
        assert list(matcher.matching_messages(data, starts, ends)) == wanted


@given(expression=expressions(), found=st.lists(pairs(), max_size=6))
def test_properties(expression: str, found: list[bytes]) -> None:
    """So, too, of the text of properties alone."""
    text = b"\x02".join(found)
    assert SqlMatcher(compile_sql(expression)).matches(text) is is_match(expression, record(text))


@pytest.mark.parametrize("version", MessageVersion)
@pytest.mark.parametrize("hosts", range(4))
def test_whatever_is_cut_off(version: MessageVersion, hosts: int) -> None:
    """A message that ends too early matches nothing, of whichever kind it is."""
    message = record(b"a\x017", b"body", version, hosts)
    matcher = SqlMatcher(compile_sql("a IS NULL OR a IS NOT NULL"))
    assert list(matcher.matching_messages(message, [0], [len(message)])) == [0]
    for end in range(1, len(message)):
        assert not list(matcher.matching_messages(message, [0], [end]))
        assert not list(matcher.matching_messages(message[:end], [0], [len(message)]))
        with pytest.raises(CorruptMessageError):
            properties_of_record(message[:end])


@pytest.mark.parametrize(
    ("expression", "needles"),
    [
        ("a = '7'", {b"a\x017"}),
        ("a = 7", {b"a\x01"}),
        ("a > 5 AND b = 'x'", {b"b\x01x"}),
        ("a = '1' OR b = '2'", {b"a\x011", b"b\x012"}),
        ("a = '1' OR b IS NULL", None),
        ("a IN ('1', '2')", {b"a\x011", b"a\x012"}),
        ("a IN ('1', '2', '3', '4', '5')", {b"a\x01"}),
        ("a = 'x\ufffdy'", {b"a\x01x"}),
        ("a <> '7'", None),
        ("a = b", None),
    ],
)
def test_needles(expression: str, needles: set[bytes] | None) -> None:
    """What is not TRUE without some bytes is known by them."""
    assert needles_of(compile_sql(expression)) == needles
