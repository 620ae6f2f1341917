"""Requests about settings, as tests ask them: what is shown, and what changes them."""

from __future__ import annotations

from typing import Any

from tests.compat.kafka.conversation import Conversation

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
GROUP_SESSION = "consumer.session.timeout.ms"
SET, DELETE, APPEND, SUBTRACT = range(4)


def describe(
    conversation: Conversation,
    kind: int,
    name: str,
    keys: list[str] | None = None,
    *,
    version: int = 4,
) -> dict[str, Any]:
    """Return the result for one resource, its settings by name."""
    top = {"include_documentation": True} if version >= 3 else {}
    answer = conversation.ask(
        "DescribeConfigs",
        version,
        resources=[{"resource_type": kind, "resource_name": name, "configuration_keys": keys}],
        include_synonyms=True,
        **top,
    )
    (result,) = answer["results"]
    assert (result["resource_type"], result["resource_name"]) == (kind, name)
    result["configs"] = {entry["name"]: entry for entry in result["configs"]}
    return dict(result)


def shown(conversation: Conversation, kind: int, name: str, key: str) -> tuple[str | None, int]:
    """Return the value of one setting and its source."""
    entry = describe(conversation, kind, name, [key])["configs"][key]
    return entry["value"], entry["config_source"]


def alter(
    conversation: Conversation,
    kind: int,
    name: str,
    *changes: tuple[str, int, str | None],
    version: int = 1,
    is_rehearsal: bool = False,
) -> int:
    """Change single settings of one resource; return the error code."""
    configs = [
        {"name": key, "config_operation": operation, "value": value}
        for key, operation, value in changes
    ]
    answer = conversation.ask(
        "IncrementalAlterConfigs",
        version,
        resources=[{"resource_type": kind, "resource_name": name, "configs": configs}],
        validate_only=is_rehearsal,
    )
    (result,) = answer["responses"]
    assert (result["resource_type"], result["resource_name"]) == (kind, name)
    assert bool(result["error_message"]) == bool(result["error_code"])
    code: int = result["error_code"]
    return code


def replace(
    conversation: Conversation,
    kind: int,
    name: str,
    settings: dict[str, str | None],
    *,
    version: int = 2,
    is_rehearsal: bool = False,
) -> int:
    """Replace the settings of one resource; return the error code."""
    configs = [{"name": key, "value": value} for key, value in settings.items()]
    answer = conversation.ask(
        "AlterConfigs",
        version,
        resources=[{"resource_type": kind, "resource_name": name, "configs": configs}],
        validate_only=is_rehearsal,
    )
    code: int = answer["responses"][0]["error_code"]
    return code
