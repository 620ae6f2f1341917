"""The two kinds of message id, and the address in them."""

from __future__ import annotations

import pytest

from logstore.segments.rocketmq.messages.host_address import HostAddress
from logstore.segments.rocketmq.messages.message_id import (
    MessageIdError,
    UniqueKey,
    java_offset_in,
    joined_message_ids,
    offset_message_id,
    parse_offset_message_id,
    parse_unique_key,
)


@pytest.mark.parametrize(
    ("host", "port", "physical_offset", "text"),
    [
        ("10.0.0.1", 10911, 1024, "0A00000100002A9F0000000000000400"),
        ("fd00::27d", 19291, 2574, f"FD00{'0' * 24}027D00004B5B0000000000000A0E"),
    ],
)
def test_the_brokers_id_is_host_and_physical_offset(
    host: str, port: int, physical_offset: int, text: str
) -> None:
    """32 digits with IPv4, 56 with IPv6; read back they are the same."""
    address = HostAddress.of(host, port)
    assert offset_message_id(address, physical_offset) == text
    assert parse_offset_message_id(text) == (address, physical_offset)
    assert parse_offset_message_id(text.lower()) == (address, physical_offset)


@pytest.mark.parametrize("host", ["10.0.0.1", "fd00::27d"])
def test_ids_of_a_batch_stand_between_commas(host: str) -> None:
    """They are those of the single messages, in the same order."""
    address, places = HostAddress.of(host, 10911), [0, 290, 1 << 40]
    ids = joined_message_ids(address, places)
    assert ids.split(",") == [offset_message_id(address, place) for place in places]
    assert joined_message_ids(address, []) == ""


def test_the_clients_id_has_five_parts() -> None:
    """The key is one that a Java client made."""
    text = "FD0000000000000000000000000000027D1F4E0E2F2A67CFB9270002"
    key = parse_unique_key(text)
    assert key == UniqueKey(HostAddress.of("fd00::2", 0).address, 0x7D1F, 0x4E0E2F2A, 0x67CFB927, 2)
    assert str(key) == text
    assert str(UniqueKey(b"\x0a\0\0\1", 70000, -1, 5, 65537)) == "0A0000011170FFFFFFFF000000050001"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0A",
        "0" * 31,
        "0" * 33,
        "x" * 32,
        "0 " * 16,
        "0A  " + "0" * 28,
        "\N{FULLWIDTH DIGIT ONE}" * 32,
    ],
)
def test_what_is_no_id_is_refused(text: str) -> None:
    """The error names the text."""
    for parse in (parse_offset_message_id, parse_unique_key):
        with pytest.raises(MessageIdError, match=repr(text)):
            parse(text)


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("0" * 31 + "a", 10),
        ("0" * 55 + "A", 10),
        ("0" * 55 + "A" + "F", 10),
        ("0" * 55 + "A" + "0" * 20, 10),
        ("?" * 32, -1),
        ("0" * 16 + "7F" * 8, 0x7F7F_7F7F_7F7F_7F7F),
    ],
)
def test_java_finds_an_offset_in_what_is_no_id(text: str, offset: int) -> None:
    """Of what is too long it reads what it needs, and what is no digit is one less than none."""
    assert java_offset_in(text) == offset


@pytest.mark.parametrize("text", ["", "0", "0" * 31, "0" * 33, "0" * 55])
def test_what_is_too_short_has_no_offset(text: str) -> None:
    """All but 32 characters are taken for an id with an IPv6 host."""
    with pytest.raises(MessageIdError, match=repr(text)):
        java_offset_in(text)


def test_addresses_are_read_in_every_spelling() -> None:
    """Brackets and scopes around an IPv6 address do not count; a name is refused."""
    for spelling in ("::1", "[::1]", "::1%lo"):
        assert HostAddress.of(spelling, 1) == HostAddress(bytes(15) + b"\1", 1)
    assert str(HostAddress.of("::1", 80)) == "[::1]:80"
    assert str(HostAddress.of("127.0.0.1", 80)) == "127.0.0.1:80"
    assert HostAddress.from_packed(HostAddress.of("::1", 80).packed) == HostAddress.of("::1", 80)
    with pytest.raises(ValueError, match="localhost"):
        HostAddress.of("localhost", 1)
    with pytest.raises(ValueError, match="no IPv4 or IPv6"):
        HostAddress(b"abc", 1)
