"""Properties cut around their unique key say what a look at all of them says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from logstore.segments.rocketmq.messages.properties import find_property, tags_code
from logstore.segments.rocketmq.messages.properties_shape import is_plain, take_apart

pieces = st.sampled_from(
    [
        "UNIQ_KEY\x01", "TAGS\x01", "KEYS\x01", "DELAY\x01", "TIMER_OUT_MS\x01", "INNER_NUM\x01",
        "X", "a", "b c", "\x02", "\x01", "é",
    ]
)  # fmt: skip


@given(st.lists(st.lists(pieces, max_size=12).map("".join).map(str.encode), max_size=8))
def test_a_shape_says_what_the_text_says(texts: list[bytes]) -> None:
    """Key, keys, tags and tags code are those of the text, whatever texts came before it."""
    for text in texts:
        shape, unique_key = take_apart(text)
        if shape is None:
            assert unique_key == b""
            continue
        assert unique_key == find_property(text, b"UNIQ_KEY\x01")
        assert shape.keys == find_property(text, b"KEYS\x01")
        tags = find_property(text, b"TAGS\x01")
        assert (shape.tags, shape.tags_code) == (tags, 0 if tags is None else tags_code(tags))
        assert is_plain(text) or not shape.is_plain or b"\x01" in unique_key


def test_a_usual_text_has_a_shape() -> None:
    """One client's messages share theirs; without a unique key there is none."""
    first, key = take_apart(b"TAGS\x01t\x02UNIQ_KEY\x01AB01\x02WAIT\x01true\x02")
    second, other = take_apart(b"TAGS\x01t\x02UNIQ_KEY\x01AB02\x02WAIT\x01true\x02")
    assert first is second
    assert (key, other) == (b"AB01", b"AB02")
    assert take_apart(b"TAGS\x01t\x02WAIT\x01true\x02") == (None, b"")
    assert take_apart(b"UNIQ_KEY\x01k\x02")[1] == b"k"
    assert take_apart(b"TAGS\x01t\x02") == (None, b"")


def test_a_delay_anywhere_is_not_plain() -> None:
    """What is more than a message to be queued is seen in front of the unique key and behind it."""
    for text in (
        b"DELAY\x013\x02UNIQ_KEY\x01k\x02",
        b"UNIQ_KEY\x01k\x02DELAY\x013\x02",
        b"UNIQ_KEY\x01k\x02TIMER_DELIVER_MS\x013\x02",
        b"INNER_MULTI_DISPATCH\x01a\x02UNIQ_KEY\x01k\x02",
    ):
        shape, _ = take_apart(text)
        assert shape is not None
        assert not shape.is_plain
