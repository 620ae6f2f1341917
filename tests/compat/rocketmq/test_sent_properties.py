"""What becomes of the properties that a client sends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.rocketmq.sending.sent_properties import PropertyRewriter
from logstore.segments.rocketmq.messages.java_strings import java_hash_map_order
from logstore.segments.rocketmq.messages.properties import parse_properties

KEY = "FD000000000000000000000000000002021E4E0E2F2A67D00C5A0000"
ADDED = {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true", "CLUSTER": "DefaultCluster"}


def _rewriter() -> PropertyRewriter:
    return PropertyRewriter("DefaultRegion", "DefaultCluster", lambda: "MADE", is_trace_on=True)


def test_the_stored_text_is_that_of_a_real_broker() -> None:
    """The text is what 5.5.0 stored for what the same client sent (golden case wire)."""
    found = _rewriter().rewrite(
        f"KEYS\x01key_java_json\x02x\x011\x02UNIQ_KEY\x01{KEY}\x02WAIT\x01true\x02TAGS\x01a\x02",
        "orders",
    )
    names = [item.partition("\x01")[0] for item in found.text.split("\x02")[:-1]]
    assert names == [
        "MSG_REGION", "UNIQ_KEY", "CLUSTER", "TAGS", "KEYS", "WAIT", "TRACE_ON", "x",
    ]  # fmt: skip


def test_the_second_text_goes_the_short_way_to_the_same_end() -> None:
    """Texts with names that were seen before come out as from a rewriter that never saw any."""
    seen = _rewriter()
    for number in range(3):
        text = f"TAGS\x01t{number}\x02UNIQ_KEY\x01{KEY}{number}\x02WAIT\x01true\x02"
        assert seen.rewrite(text, "orders") == _rewriter().rewrite(text, "orders")
        assert seen.rewrite(text, "orders").unique_key == f"{KEY}{number}"


@pytest.mark.parametrize(
    ("text", "is_half", "waits"),
    [
        (f"UNIQ_KEY\x01{KEY}\x02", False, True),
        (f"UNIQ_KEY\x01{KEY}\x02WAIT\x01false\x02", False, False),
        (f"UNIQ_KEY\x01{KEY}\x02WAIT\x01TRUE\x02", False, True),
        (f"UNIQ_KEY\x01{KEY}\x02TRAN_MSG\x01true\x02", True, True),
        (f"UNIQ_KEY\x01{KEY}\x02TRAN_MSG\x01no\x02", False, True),
    ],
)
def test_what_the_broker_needs_to_know(text: str, is_half: bool, waits: bool) -> None:
    """Half messages, and senders that do not wait, are told apart, at first and later on."""
    rewriter = _rewriter()
    for _ in range(2):
        found = rewriter.rewrite(text, "orders")
        assert (found.is_half, found.waits_for_flush) == (is_half, waits)


@pytest.mark.parametrize("last", ["x", "UNIQ_KEY"])
def test_a_last_name_without_a_value_is_left_out(last: str) -> None:
    """Also where no separator follows, and names like these were seen before."""
    seen, key = _rewriter(), f"UNIQ_KEY\x01{KEY}\x02"
    first = "TAGS\x01a\x02" + (key if last == "x" else "")
    seen.rewrite(f"{first}{last}\x011\x02", "orders")
    found = seen.rewrite(f"{first}{last}\x01", "orders")
    assert found == _rewriter().rewrite(first, "orders")


def test_a_message_without_a_unique_key_gets_one() -> None:
    """The key that the broker makes is stored and told."""
    found = _rewriter().rewrite("TAGS\x01a\x02", "orders")
    assert (found.unique_key, parse_properties(found.text.encode())["UNIQ_KEY"]) == ("MADE", "MADE")


def test_what_only_the_broker_may_set_is_removed() -> None:
    """A check point of pop consumption, sent along, is not stored."""
    found = _rewriter().rewrite(f"POP_CK\x011 2 3\x02UNIQ_KEY\x01{KEY}\x02", "orders")
    assert "POP_CK" not in parse_properties(found.text.encode())


_NAMES = st.sampled_from(
    ["KEYS", "TAGS", "WAIT", "UNIQ_KEY", "DELAY", "TRAN_MSG", "CLUSTER", "POP_CK", "a", "b", ""]
)
_VALUES = st.sampled_from(["", "1", "true", "x y", "ünï", "\x01"]) | st.text(
    st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), max_size=5
)


@given(st.lists(st.lists(st.tuples(_NAMES, _VALUES), max_size=6), min_size=1, max_size=6))
def test_any_texts_come_out_as_a_hash_map_would_write_them(
    texts: list[list[tuple[str, str]]],
) -> None:
    """Whatever was seen before, each text becomes the map that Java makes of it, in its order."""
    rewriter = _rewriter()
    for pairs in [*texts, *texts]:
        text = "".join(f"{name}\x01{value}\x02" for name, value in pairs)
        wanted = parse_properties(text.encode())
        stored = {name: value for name, value in wanted.items() if name != "POP_CK"}
        stored.setdefault("UNIQ_KEY", "MADE")
        stored.update(ADDED)
        order = java_hash_map_order(tuple(stored), 128)
        found = rewriter.rewrite(text, "orders")
        assert found.text == "".join(f"{name}\x01{stored[name]}\x02" for name in order)
        assert found.unique_key == stored["UNIQ_KEY"]
