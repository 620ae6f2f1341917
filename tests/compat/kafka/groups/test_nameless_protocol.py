"""A member that calls its protocol nothing, as the real broker answers it."""

from __future__ import annotations

import pytest

from tests.compat.kafka.conversation import Conversation

JOIN_GROUP = {
    "group_id": "g",
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 60_000,
    "protocol_type": "consumer",
    "protocols": [{"name": "", "metadata": b""}],
}
MEMBER_ID_REQUIRED = 79


@pytest.mark.parametrize("version", range(10))
def test_a_protocol_without_a_name_is_none(version: int) -> None:
    """From version 7 on, which has null for that, it is told as null."""
    talk = Conversation({"group.initial.rebalance.delay.ms": "0"})
    answer = talk.ask("JoinGroup", version, member_id="", **JOIN_GROUP)
    if answer["error_code"] == MEMBER_ID_REQUIRED:
        answer = talk.ask("JoinGroup", version, member_id=answer["member_id"], **JOIN_GROUP)
    assert (answer["error_code"], answer["generation_id"]) == (0, 1)
    assert answer["protocol_name"] == (None if version >= 7 else "")
