"""Which names topics may have, which clash, and which belong to Kafka itself."""

from __future__ import annotations

import re
from collections.abc import Iterable

NAME_LENGTH_MAX = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
#: how Kafka begins to say what is wrong with a name
_INVALID = "Topic name is invalid: "

GROUPS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
SHARE_GROUPS_TOPIC = "__share_group_state"
#: KRaft's own log: never a topic that clients can see
METADATA_TOPIC = "__cluster_metadata"

INTERNAL_TOPICS = frozenset({GROUPS_TOPIC, TRANSACTIONS_TOPIC, SHARE_GROUPS_TOPIC})


def flaw_of(name: str) -> str | None:
    """Return what is wrong with a topic's name, None if nothing is (``Topic.validate``)."""
    if not name:
        return f"{_INVALID}the empty string is not allowed"
    if name in (".", ".."):
        return f"{_INVALID}'{name}' is not allowed"
    if len(name) > NAME_LENGTH_MAX:
        return (
            f"{_INVALID}the length of '{name}' is longer than the max allowed length "
            f"{NAME_LENGTH_MAX}"
        )
    if not _LEGAL.fullmatch(name):
        return (
            f"{_INVALID}'{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None


def clash_of(name: str, others: Iterable[str]) -> str | None:
    """
    Return the topic whose metrics would have the same name, None if there is none.

    Kafka's metrics write both ``.`` and ``_`` as ``_``, so it keeps ``a.b`` and ``a_b`` apart.
    """
    unified = name.replace(".", "_")
    if "_" not in unified:
        return None
    length = len(name)
    for other in others:
        if len(other) == length and other != name and other.replace(".", "_") == unified:
            return other
    return None
