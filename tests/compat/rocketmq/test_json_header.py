"""JSON headers: whatever clients write is read, and what we write is what Java writes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.rocketmq.wire.json_header import read_json_header, write_json_header
from logstore.compat.rocketmq.wire.languages import LANGUAGES, language_number, language_of

MINIMAL = {"code": 10, "opaque": 7, "flag": 0, "language": "JAVA", "version": 63}


def header(**changes: object) -> bytes:
    """Return a header with some fields changed or added."""
    return json.dumps({**MINIMAL, **changes}).encode()


def fields_of(ext_fields: object) -> dict[str, str]:
    """Return the fields that a header is read to have."""
    return read_json_header(header(extFields=ext_fields))[6]


class TestHabits:
    """What real clients do."""

    def test_a_header_of_java(self) -> None:
        """All seven keys; the form of the header itself is no news."""
        data = (
            b'{"code":310,"extFields":{"a":"g","i":"KEYS\\u0001k\\u0002"},"flag":2,'
            b'"language":"JAVA","opaque":11,"serializeTypeCurrentRPC":"JSON","version":513}'
        )
        fields = {"a": "g", "i": "KEYS\x01k\x02"}
        assert read_json_header(data) == (310, 11, 2, "JAVA", 513, None, fields)

    def test_a_header_of_cpp(self) -> None:
        """Ends in a new line, has an empty remark and no serializer, and numbers as fields."""
        data = (
            b'{"code":11,"extFields":{"AccessKey":"","queueId":0,"sysFlag":6,"subVersion":"17"},'
            b'"flag":0,"language":"CPP","opaque":16,"remark":"","version":63}\n'
        )
        fields = {"AccessKey": "", "queueId": "0", "sysFlag": "6", "subVersion": "17"}
        assert read_json_header(data) == (11, 16, 0, "CPP", 63, "", fields)

    def test_a_header_of_javascript(self) -> None:
        """Flags of JSON become Java's text for them."""
        assert fields_of({"k": False, "m": True, "g": 1795232926207}) == {
            "k": "false",
            "m": "true",
            "g": "1795232926207",
        }

    def test_null_is_as_if_it_were_not_there(self) -> None:
        """A field without a value is no field; no fields are none."""
        assert fields_of({"a": None, "b": "x"}) == {"b": "x"}
        assert fields_of(None) == {}

    def test_other_values_become_their_text(self) -> None:
        """Java reads any JSON value of a text field as the text of that value."""
        assert fields_of({"a": 1.5, "b": [1, 2], "c": {"d": "e"}}) == {
            "a": "1.5",
            "b": "[1,2]",
            "c": '{"d":"e"}',
        }

    @pytest.mark.parametrize(
        ("written", "read"),
        [("PYTHON", "PYTHON"), (3, "PYTHON"), ("KLINGON", "OTHER"), (99, "OTHER"), (None, "OTHER")],
    )
    def test_languages(self, written: object, read: str) -> None:
        """By name or by number; an unknown one does no harm."""
        assert read_json_header(header(language=written))[3] == read

    def test_numbers_as_text(self) -> None:
        """Java's reader turns text into the number that stands in it."""
        data = header(code="310", opaque="-5", flag="1", version="409")
        assert read_json_header(data)[:5] == (310, -5, 1, "JAVA", 409)

    def test_what_is_not_said_is_zero(self) -> None:
        """An empty object is a request of code 0 without fields."""
        assert read_json_header(b"{}") == (0, 0, 0, "OTHER", 0, None, {})

    def test_bytes_that_are_no_text(self) -> None:
        """Bad UTF-8 is replaced, as by Java; the rest counts."""
        data = header(extFields={"a": "X"}).replace(b"X", b"x\xff\xfey")
        assert read_json_header(data)[6] == {"a": "x\ufffd\ufffdy"}

    def test_control_characters_as_they_are(self) -> None:
        """Properties hold characters 1 and 2; not everybody escapes them."""
        data = header(extFields={"i": "XY"}).replace(b"XY", b"k\x01v\x02")
        assert read_json_header(data)[6] == {"i": "k\x01v\x02"}

    def test_halves_of_a_pair_written_one_by_one(self) -> None:
        """Are a character (CESU-8, as Java's own encoding has it); alone they are none."""
        data = header(extFields={"a": "HALVES"})
        clef, half = b"\xed\xa0\xb4\xed\xb4\x9e", b"\xed\xa0\x80a"
        assert read_json_header(data.replace(b"HALVES", clef))[6] == {"a": "\U0001d11e"}
        assert read_json_header(data.replace(b"HALVES", half))[6] == {"a": "?a"}
        assert read_json_header(data.replace(b"HALVES", b"\xff"))[6] == {"a": "\ufffd"}

    def test_half_a_surrogate_pair(self) -> None:
        """Cannot be written as UTF-8 again; Java's text for it is a question mark."""
        data = header(extFields={"a": "X"}).replace(b"X", b"x\\ud800y")
        assert read_json_header(data)[6] == {"a": "x?y"}


class TestRefusals:
    """What is no header."""

    @pytest.mark.parametrize(
        "data",
        [
            b"", b"{", b"[]", b"null", b"17", b'"text"', b"\x00\x01", b'{"code":10', b"[" * 5000,
            header(code=[1]), header(code=1.5), header(opaque="x"), header(opaque=2**31),
            header(version={}), header(extFields=[1]), header(extFields="a=b"),
        ],
    )  # fmt: skip
    def test_no_header(self, data: bytes) -> None:
        """Is a ValueError, whatever is wrong with it."""
        with pytest.raises(ValueError, match=r"."):
            read_json_header(data)


class TestWriting:
    """What Java's servers write."""

    def test_the_order_of_keys(self) -> None:
        """Alphabetical, without blanks."""
        assert write_json_header(0, 7, 1, "JAVA", 513, "why", {"a": "b"}) == (
            b'{"code":0,"extFields":{"a":"b"},"flag":1,"language":"JAVA","opaque":7,'
            b'"remark":"why","serializeTypeCurrentRPC":"JSON","version":513}'
        )

    def test_null_is_left_out(self) -> None:
        """No remark and no header object: neither key; a header object without values: {}."""
        assert write_json_header(0, 7, 1, "JAVA", 513, None, None) == (
            b'{"code":0,"flag":1,"language":"JAVA","opaque":7,"serializeTypeCurrentRPC":"JSON",'
            b'"version":513}'
        )
        assert b'"extFields":{},' in write_json_header(0, 7, 1, "JAVA", 513, None, {})

    def test_half_a_surrogate_pair_is_written_as_a_question_mark(self) -> None:
        """A remark may quote whatever a client sent."""
        assert b'"remark":"x?"' in write_json_header(1, 7, 1, "JAVA", 513, "x\ud800", None)

    @given(
        st.integers(-(2**31), 2**31 - 1),
        st.sampled_from(LANGUAGES),
        st.none() | st.text(st.characters(codec="utf-8")),
        st.dictionaries(
            st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8"))
        ),
    )
    def test_what_is_written_is_read(
        self, opaque: int, language: str, remark: str | None, fields: dict[str, str]
    ) -> None:
        """Every header comes back."""
        data = write_json_header(310, opaque, 2, language, 409, remark, fields)
        assert read_json_header(data) == (310, opaque, 2, language, 409, remark, fields)


def test_languages_have_numbers() -> None:
    """The number of each name leads back to it; of no name, that of OTHER."""
    assert [language_of(language_number(name)) for name in LANGUAGES] == list(LANGUAGES)
    assert language_number("KLINGON") == language_number("OTHER") == 7
