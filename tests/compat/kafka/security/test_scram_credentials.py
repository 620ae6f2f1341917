"""SCRAM credentials by the protocol: given, described, taken away, kept, and good for a login."""

from __future__ import annotations

import errno
from typing import Any

from logstore.compat.kafka.broker import Broker
from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.security.sasl.scram_mechanism import ScramMechanism
from logstore.segments.kafka.cluster_metadata.release import parse_release
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.conversation import DIRECTORY, Conversation

SHA_256, SHA_512 = ScramMechanism


def given(name: str, iterations: int = 4096, mechanism: int = 1) -> dict[str, Any]:
    """Return a credential to be given."""
    salted = SHA_256.salted_password("secret", b"salt", 4096)
    return {
        "name": name, "mechanism": mechanism, "iterations": iterations, "salt": b"salt",
        "salted_password": salted,
    }  # fmt: skip


def alter(
    conversation: Conversation,
    *upsertions: dict[str, Any],
    deletions: list[tuple[str, int]] = [],  # noqa: B006
) -> dict[str, tuple[int, str | None]]:
    """Change credentials; return what is said of each user."""
    found = conversation.ask(
        "AlterUserScramCredentials", 0, upsertions=list(upsertions),
        deletions=[{"name": name, "mechanism": mechanism} for name, mechanism in deletions],
    )  # fmt: skip
    return {one["user"]: (one["error_code"], one["error_message"]) for one in found["results"]}


def describe(conversation: Conversation, *users: str) -> dict[str, Any]:
    """Return codes, or mechanisms with iterations."""
    asked = [{"name": user} for user in users] if users else None
    found = conversation.ask("DescribeUserScramCredentials", 0, users=asked)
    assert found["error_code"] == 0
    return {
        one["user"]: one["error_code"]
        or [(info["mechanism"], info["iterations"]) for info in one["credential_infos"]]
        for one in found["results"]
    }


def test_credentials_are_kept() -> None:
    """By mechanism, over a restart; a new one takes the place of the old."""
    conversation = Conversation()
    assert describe(conversation) == {}
    assert alter(conversation, given("alice"), given("bob")) == {
        "alice": (0, None), "bob": (0, None),
    }  # fmt: skip
    alter(conversation, given("alice", 5000, SHA_512))
    alter(conversation, given("bob", 6000))
    conversation.restart()
    assert describe(conversation) == {"alice": [(1, 4096), (2, 5000)], "bob": [(1, 6000)]}
    assert describe(conversation, "bob", "eve", "alice", "bob") == {
        "bob": ErrorCode.DUPLICATE_RESOURCE,
        "eve": ErrorCode.RESOURCE_NOT_FOUND,
        "alice": [(1, 4096), (2, 5000)],
    }
    record = conversation.broker.store.metadata.image.scram[SHA_256, "alice"]
    assert SHA_256.is_of(record, "secret")
    assert alter(conversation, deletions=[("alice", 1)]) == {"alice": (0, None)}
    conversation.restart()
    assert describe(conversation) == {"alice": [(2, 5000)], "bob": [(1, 6000)]}


def test_what_is_refused_of_a_request() -> None:
    """The others are served all the same."""
    conversation = Conversation()
    unacceptable = ErrorCode.UNACCEPTABLE_CREDENTIAL
    assert alter(
        conversation,
        given("few", 4095), given("many", 16385), given("good", 16384), given("twice"),
        given("twice"), given(""), given("odd", mechanism=3), given("both"),
        deletions=[("nobody", 1), ("nobody", 1), ("x", 0)],
    ) == {
        "few": (unacceptable, "Too few iterations"),
        "many": (unacceptable, "Too many iterations"),
        "": (unacceptable, "Username must not be empty"),
        "twice": (
            ErrorCode.DUPLICATE_RESOURCE,
            "A user credential cannot be altered twice in the same request",
        ),
        "odd": (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        "x": (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        "nobody": (
            ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
        ),
        "good": (0, None),
        "both": (0, None),
    }  # fmt: skip
    assert alter(conversation, given("good"), deletions=[("good", 1)])["good"][0] == (
        ErrorCode.DUPLICATE_RESOURCE
    )
    assert describe(conversation) == {"good": [(1, 16384)], "both": [(1, 4096)]}


def test_users_are_walked_in_the_order_of_a_table() -> None:
    """In the answer and in the metadata's log, by the hashes of their names, as by Kafka."""
    asked = [given(name) for name in ("alice", "bob", "user0", "user1")]
    assert list(alter(Conversation(), *asked)) == ["user1", "user0", "bob", "alice"]


def test_a_disk_that_refuses_them() -> None:
    """Nobody is told that it was done, and nothing is."""
    conversation = Conversation()
    conversation.host.fs.faults.fail_next("sync", errno.EIO, path="*__cluster_metadata-0/*")
    found = alter(conversation, given("alice"), given(""))
    assert found["alice"][0] == ErrorCode.KAFKA_STORAGE_ERROR
    assert found[""][0] == ErrorCode.UNACCEPTABLE_CREDENTIAL
    assert describe(conversation) == {}


def test_old_metadata_has_no_place_for_them() -> None:
    """Before 3.5-IV2 there was no SCRAM without ZooKeeper."""
    conversation = Conversation()
    conversation.broker.close()
    old = Broker.open(SimulatedHost(), DIRECTORY, {}, release=parse_release("3.5-IV1"))
    conversation.broker, conversation.connection = old, old.connect("127.0.0.1")
    assert alter(conversation, given("alice"))["alice"] == (
        ErrorCode.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM"
    )  # fmt: skip


def test_a_key_of_nothing() -> None:
    """An empty salted password is -1, as Kafka stumbles over it; a user who comes twice is 92."""
    conversation = Conversation()
    empty = {**given("alice"), "salted_password": b""}
    assert alter(conversation, empty, given("bob")) == {"alice": (-1, None), "bob": (0, None)}
    assert alter(conversation, empty, empty)["alice"][0] == ErrorCode.DUPLICATE_RESOURCE
    assert describe(conversation) == {"bob": [(1, 4096)]}
