"""Numbers among the settings: read and written as Java does."""

from __future__ import annotations

import pytest

from tests.compat.kafka.config_requests import BROKER, SET, TOPIC, alter, shown
from tests.compat.kafka.conversation import Conversation


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("0.0001", "1.0E-4"),
        ("0.00099999", "9.9999E-4"),
        ("1e-3", "0.001"),
        ("0.123456789012345678", "0.12345678901234568"),
        (".25", "0.25"),
        ("0", "0.0"),
        ("1", "1.0"),
        ("0.1f", "0.1"),
        ("0x1p-3", "0.125"),
    ],
)
def test_a_share_is_written_as_the_real_broker_writes_it(given: str, text: str) -> None:
    """With an exponent below 0.001, as Kafka 4.3.1 showed each of them."""
    conversation = Conversation()
    conversation.create("orders")
    assert alter(conversation, TOPIC, "orders", ("min.cleanable.dirty.ratio", SET, given)) == 0
    assert shown(conversation, TOPIC, "orders", "min.cleanable.dirty.ratio")[0] == text


@pytest.mark.parametrize("given", ["0x1", "0x1p99999", "1e999", "f", "0.5ff", "1_0"])
def test_what_java_reads_no_share_from(given: str) -> None:
    """Nor do we."""
    conversation = Conversation()
    conversation.create("orders")
    assert alter(conversation, TOPIC, "orders", ("min.cleanable.dirty.ratio", SET, given)) == 40


@pytest.mark.parametrize(
    ("given", "text"), [("1e999", "Infinity"), ("12345678", "1.2345678E7"), ("1e7", "1.0E7")]
)
def test_a_large_number_is_written_as_java_does(given: str, text: str) -> None:
    """One that no double can hold, too: where there is no limit Java takes it as infinite."""
    conversation = Conversation({"log.cleaner.io.buffer.load.factor": given})
    assert shown(conversation, BROKER, "1", "log.cleaner.io.buffer.load.factor")[0] == text
