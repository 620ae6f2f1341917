"""Why a level of a feature is refused, and how far the metadata version goes down."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from logstore.compat.kafka.broker import Broker
from logstore.segments.kafka.cluster_metadata.release import parse_release
from tests.compat.kafka.conversation import DIRECTORY, Conversation
from tests.compat.kafka.test_cluster_admin import (
    SAFE_DOWNGRADE,
    UNSAFE_DOWNGRADE,
    UPGRADE,
    finalized,
    update_features,
    update_of,
)

DIRECTION = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe "
    "or unsafe downgrade."
)


@pytest.mark.parametrize(
    ("name", "level", "change", "reason"),
    [
        ("metadata.version", 31, UPGRADE, "Local controller 1 only supports versions 7-30"),
        ("none.such", 1, UPGRADE, "Local controller 1 does not support this feature."),
        ("none.such", 0, UPGRADE, "Feature none.such not found."),
        ("group.version", -1, SAFE_DOWNGRADE, "A feature version cannot be less than 0."),
        ("group.version", 1, 4, "The controller does not support the given upgrade type."),
        (
            "group.version", 0, UPGRADE,
            DIRECTION,
        ),
    ],
)  # fmt: skip
def test_why_a_level_is_refused_is_told_as_by_kafka(
    name: str, level: int, change: int, reason: str
) -> None:
    """Kafka's tools print what the broker says."""
    failed = "The update failed for all features since the following feature had an error: "
    expected = f"{failed}Invalid update version {level} for feature {name}. {reason}"
    assert update_features(2, (name, level, change))["error_message"] == expected


def test_of_a_feature_that_is_named_twice_the_last_is_meant() -> None:
    """Whatever was wrong with the one before it."""
    twice = ("group.version", 99, UPGRADE), ("group.version", 1, UPGRADE)
    assert update_features(2, *twice)["error_code"] == 0
    told = update_features(1, *reversed(twice[1:] * 2))["results"]
    assert [one["feature"] for one in told] == ["group.version"] * 2, "each is told"
    assert update_features(2, *reversed(twice))["error_code"] == 95


def test_what_is_wrong_first_in_a_table_of_features_is_told() -> None:
    """By the hashes of their names, as in Kafka's controller."""
    wrong = ("metadata.version", 99, UPGRADE), ("group.version", 99, UPGRADE)
    assert "feature group.version." in update_features(2, *wrong)["error_message"]


def test_every_feature_depends_on_the_lowest_metadata_version() -> None:
    """A level below it is told of the first feature that would not work with it."""
    wrong = ("metadata.version", 1, SAFE_DOWNGRADE), ("group.version", 1, UPGRADE)
    assert update_features(2, *wrong)["error_message"].endswith(
        "Invalid update version 1 for feature group.version. group.version could not be set to 1 "
        "because it depends on metadata.version=7 (3.3-IV3)"
    )


class OldConversation(Conversation):
    """One with a broker whose directory was made by release 3.8."""

    def open(self, settings: Mapping[str, str] | None = None) -> Broker:
        """Return a broker over the simulated disk as it stands."""
        is_new = not self.host.fs.exists(DIRECTORY)
        release = parse_release("3.8-IV0") if is_new else None
        return Broker.open(self.host, DIRECTORY, dict(settings or {}), release=release)


def changed(conversation: Conversation, *wanted: tuple[str, int, int]) -> tuple[int, str]:
    """Ask for levels; return the code, and what is said of the one that failed."""
    updates = [update_of(2, *one) for one in wanted]
    answer = conversation.ask("UpdateFeatures", 2, feature_updates=updates)
    return answer["error_code"], (answer["error_message"] or "").partition("error: ")[2]


def test_the_metadata_version_goes_down_while_nothing_is_written_otherwise() -> None:
    """From 20 to 18, as Kafka does, and no further; a feature that needs a higher one waits."""
    conversation = OldConversation()
    name = "metadata.version"
    assert finalized(conversation)[1][name] == 20
    assert changed(conversation, (name, 18, SAFE_DOWNGRADE)) == (0, "")
    assert finalized(conversation)[1][name] == 18
    conversation.restart()
    assert finalized(conversation)[1][name] == 18
    refused = "Unsupported metadata.version downgrade from 18 to 16. "
    maybe = (
        "Refusing to perform the requested downgrade because it might delete metadata information."
    )
    assert changed(conversation, (name, 16, SAFE_DOWNGRADE)) == (95, refused + maybe)
    never = "Unsafe metadata downgrade is not supported in this version."
    assert changed(conversation, (name, 16, UNSAFE_DOWNGRADE)) == (95, refused + never)
    feature = "eligible.leader.replicas.version"
    code, reason = changed(conversation, (feature, 1, UPGRADE))
    assert (code, reason.partition("because ")[2]) == (
        95, "it depends on metadata.version level 23",
    )  # fmt: skip
    assert changed(conversation, (feature, 1, UPGRADE), (name, 23, UPGRADE)) == (0, "")
