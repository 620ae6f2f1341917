"""JSON as fastjson writes and reads it."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from logstore.segments.rocketmq.settings.release import Release
from logstore.segments.rocketmq.tables.java_json import (
    JsonError,
    ObjectKey,
    format_json,
    parse_json,
)
from logstore.segments.rocketmq.tables.json_fields import as_text

QUEUE = ObjectKey.of({"topic": "t", "brokerName": "b", "queueId": 3})
VALUE: dict[Any, Any] = {
    "e": {},
    "l": [],
    "ia": (1, 2, 3),
    "li": [1, 2, 3],
    "d": 1.0,
    "big": 2**63 - 1,
    "bool": True,
    "im": {-1: 7, 0: 5},
    "lm": {9999999999: {"x": 1}},
    "ok": {QUEUE: {"k": 1}},
    "ll": [[1], {"q": 2}],
    "bk": {True: 1},
    "ea": (),
}
#: what fastjson 1.2.69 and fastjson2 2.0.59 both printed of the same value
COMPACT = (
    '{"e":{},"l":[],"ia":[1,2,3],"li":[1,2,3],"d":1.0,"big":9223372036854775807,"bool":true,'
    '"im":{-1:7,0:5},"lm":{9999999999:{"x":1}},'
    '"ok":{{"brokerName":"b","queueId":3,"topic":"t"}:{"k":1}},"ll":[[1],{"q":2}],'
    '"bk":{true:1},"ea":[]}'
)
#: what they printed prettily, a tab shown as one space
PRETTY_4 = """{
 "e":{},
 "l":[],
 "ia":[1,2,3],
 "li":[
  1,
  2,
  3
 ],
 "d":1.0,
 "big":9223372036854775807,
 "bool":true,
 "im":{-1:7,0:5
 },
 "lm":{9999999999:{
   "x":1
  }
 },
 "ok":{{
   "brokerName":"b",
   "queueId":3,
   "topic":"t"
  }:{
   "k":1
  }
 },
 "ll":[
  [
   1
  ],
  {
   "q":2
  }
 ],
 "bk":{true:1
 },
 "ea":[]
}"""
PRETTY_5 = (
    PRETTY_4.replace('"im":{-1:7,0:5', '"im":{\n  -1:7,\n  0:5')
    .replace("{9999999999", "{\n  9999999999")
    .replace('"ok":{{', '"ok":{\n  {')
    .replace("{true", "{\n  true")
)


@pytest.mark.parametrize(
    ("release", "expected"), [(Release.V4, PRETTY_4), (Release.V5, PRETTY_5)], ids=str
)
def test_text_is_that_of_fastjson(release: Release, expected: str) -> None:
    """Pretty and compact text of every kind of value is what the release's fastjson printed."""
    assert format_json(VALUE, release).decode() == COMPACT
    assert format_json(VALUE, release, is_pretty=True).decode() == expected.replace(" ", "\t")


def test_escapes_are_those_of_fastjson() -> None:
    """Control characters are escaped; 4.x writes more of them, and hex digits in capitals."""
    text = '\x00\b\t\n\x0b\f\r\x1f"\\/\x7f\x9f\xa0\u2028é中😀\ud800'
    assert format_json(text, Release.V5).decode() == (
        '"\\u0000\\b\\t\\n\\u000b\\f\\r\\u001f\\"\\\\/\x7f\x9f\xa0\u2028é中😀?"'
    )
    assert format_json(text, Release.V4).decode() == (
        '"\\u0000\\b\\t\\n\\u000B\\f\\r\\u001F\\"\\\\/\\u007F\\u009F\xa0\\u2028é中😀?"'
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{0:12,"1":7}', {0: 12, "1": 7}),
        ('{"a":1,}', {"a": 1}),
        ("{,\t'a' : 'b',,c:null}", {"a": "b", "c": None}),
        ("[1,2,,3,]", [1, 2, 3]),
        ('{{"q":1,"l":[2]}:5}', {ObjectKey((("q", 1), ("l", (2,)))): 5}),
        ('"\\ud83d\\ude00\\x41\\/\\u0041"', "😀A/A"),
        ('"\\ud800"', "\ud800"),
        ("-1.5e3", -1500.0),
        ("{true:1,false:2,null:3}", {True: 1, False: 2, None: 3}),
        ("  {}  ", {}),
    ],
)
def test_what_fastjson_reads_is_read(text: str, expected: object) -> None:
    """Bare and quoted keys, object keys, single quotes and superfluous commas are read."""
    assert parse_json(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"a"',
        '{"a":}',
        '{"a":1 "b":2}',
        "[1 2]",
        '"abc',
        '"\\u12"',
        '"\\',
        "nul",
        "{}x",
        "-",
        "[" * 100,
        "{" * 100,
        "9" * 5000,
        "1e999",
    ],
)
def test_what_is_no_json_is_an_error_with_its_place(text: str) -> None:
    """A text that is cut short or wrong is an error that names the character."""
    with pytest.raises(JsonError, match=r"character \d+: expected"):
        parse_json(text)


keys = st.one_of(
    st.text(max_size=8),
    st.integers(-(2**63), 2**63 - 1),
    st.builds(ObjectKey.of, st.dictionaries(st.text(max_size=4), st.integers(0, 9), min_size=1)),
)
values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=12),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=4)),
    max_leaves=12,
)


@given(values, st.sampled_from(Release), st.booleans())
def test_what_is_written_reads_as_it_was(value: Any, release: Release, is_pretty: bool) -> None:
    """Every value comes back as it was, from both releases' text, pretty or not."""
    data = format_json(value, release, is_pretty=is_pretty)
    assert parse_json(data.decode()) == value


@given(st.recursive(st.text() | st.integers(-9, 9) | st.none(), st.lists))
def test_json_proper_is_read_as_python_reads_it(value: Any) -> None:
    """What Python writes as JSON, escapes and all, reads the same."""
    assert parse_json(json.dumps(value)) == value
    assert parse_json(json.dumps(value, ensure_ascii=False, indent=1)) == value


@given(st.text("{}[]\":,'\\u0019aetrufalsn- .\n", max_size=60))
def test_any_text_is_a_value_or_a_json_error(text: str) -> None:
    """Whatever the text: it is refused with a JsonError, or read, and written reads the same."""
    with suppress(JsonError):
        value = parse_json(text)
        assert parse_json(format_json(value, is_pretty=True).decode()) == value


def outcome(text: str) -> str:
    """Return what a text says, or that it is refused; the types count, and the order."""
    try:
        return repr(parse_json(text))
    except JsonError:
        return "refused"


@given(
    st.text("{}[]\":,'\\ud83de0019aetrufalsnNI- .\n\ud83d", max_size=40)
    | values.map(lambda value: format_json(value).decode())
)
@example('{"a":1,"a":[-0,1.50,1e5,1E400]}')
@example("[" * 64 + "]" * 64)
@example("[" * 65 + "]" * 65)
@example("[" * 66 + "]" * 66)
@example("[" * 64 + '{"a":0}' + "]" * 64)
@example("[" * 5000 + "]" * 5000)
@example("9" * 40)
@example("9" * 41)
@example("-" + "9" * 40)
@example("[NaN]")
@example('"\ud83d\\ude00"')
@example('"a\x01\tb"')
def test_json_proper_is_read_the_same_in_the_short_way(text: str) -> None:
    """A leading \\v, which only fastjson passes over, makes it be read by fastjson's rules."""
    assert outcome(text) == outcome("\v" + text)


def test_what_is_no_text_is_its_json() -> None:
    """As fastjson2 reads it where a text is expected."""
    found = [as_text(one) for one in ({}, {"a": [1, "ö"]}, [True, None], True, 1.5, "x")]
    assert found == ["{}", '{"a":[1,"ö"]}', "[true,null]", "true", "1.5", "x"]
    assert as_text(parse_json('{{"a":1}:2}'))  # a map may have objects for keys
