"""``logstore query`` of a RocketMQ store."""

from __future__ import annotations

import sys
from typing import Any

import attrs
import click

from logstore.os_host import system_host
from logstore.tools.inspection.json_line import json_line
from logstore.tools.inspection.road import Explanation
from logstore.tools.inspection.rocketmq.explanation import (
    explain_message_id,
    explain_physical_offset,
    explain_queue_offset,
    explain_time,
)
from logstore.tools.inspection.rocketmq.key_search import KeyQuestion, explain_key
from logstore.tools.inspection.rocketmq.message_road import message_content
from logstore.tools.inspection.rocketmq.stored_store import StoredStore
from logstore.tools.inspection.times import iso_time


@attrs.frozen
class StoreQuestion:
    """What is asked of a store; of all but `topic`, `queue_id` and `count_max` exactly one."""

    topic: str | None = None
    queue_id: int | None = None
    queue_offset: int | None = None
    time_ms: int | None = None
    physical_offset: int | None = None
    key: str | None = None
    unique_key: str | None = None
    message_id: str | None = None
    count_max: int = 32

    @property
    def asked(self) -> dict[str, int | str]:
        """What is looked for, by its name in JSON."""
        found = {
            "queueOffset": self.queue_offset,
            "timestamp": self.time_ms,
            "physicalOffset": self.physical_offset,
            "key": self.key,
            "uniqKey": self.unique_key,
            "msgId": self.message_id,
        }
        return {name: value for name, value in found.items() if value is not None}


def query_store(
    directory: str, question: StoreQuestion, settings: dict[str, str], *, is_json: bool
) -> None:
    """Print the road to the answer; exits with 1 where there is none, or the way is damaged."""
    asked = question.asked
    if len(asked) != 1:
        raise click.UsageError(
            "say one of --offset, --time, --physical-offset, --key, --unique-key, --message-id"
        )
    store = StoredStore(system_host().fs, directory, settings)
    content: dict[str, Any] = {"directory": directory, "layout": "rocketmq", "asked": asked}
    if question.topic is not None:
        content["topic"] = question.topic
    if question.key is not None or question.unique_key is not None:
        found, messages = explain_key(store, _key_question(question))
        content["messages"] = [message_content(message) for message in messages]
    else:
        found = _explain(store, question)
    if is_json:
        content |= {"outcome": found.outcome, "answer": found.verdict}
        content["steps"] = [{"step": step.name, **step.fields} for step in found.steps]
        content["explanation"] = [f"{step.name}: {step.sentence}" for step in found.steps]
        click.echo(json_line(content))
    else:
        _say(directory, question, found)
    if found.outcome == "damaged":
        click.echo(f"logstore: {found.verdict}", err=True)
    if found.outcome != "found":
        sys.exit(1)


def _explain(store: StoredStore, question: StoreQuestion) -> Explanation:
    if question.physical_offset is not None:
        return explain_physical_offset(store, question.physical_offset)
    if question.message_id is not None:
        return explain_message_id(store, question.message_id)
    if question.topic is None or question.queue_id is None:
        raise click.UsageError("say --topic NAME and --queue N")
    place = question.topic, question.queue_id
    if question.queue_offset is not None:
        return explain_queue_offset(store, *place, question.queue_offset)
    assert question.time_ms is not None, "one of them is given"
    return explain_time(store, *place, question.time_ms)


def _key_question(question: StoreQuestion) -> KeyQuestion:
    if question.topic is None:
        raise click.UsageError("a key is one of a topic: say --topic NAME")
    key = question.key if question.key is not None else question.unique_key
    assert key is not None, "one of them is given"
    is_unique = question.unique_key is not None
    return KeyQuestion(question.topic, key, is_unique, count_max=question.count_max)


def _say(directory: str, question: StoreQuestion, found: Explanation) -> None:
    ((name, value),) = question.asked.items()
    shown = f"{iso_time(int(value))} ({value})" if name == "timestamp" else str(value)
    where = "" if question.topic is None else f" of {question.topic}"
    if question.queue_id is not None:
        where += f"-{question.queue_id}"
    click.echo(f"{name} {shown}{where} in {directory}")
    for step in found.steps:
        click.echo(f"  {step.name:<10} {step.sentence}")
    click.echo(f"  {'answer':<10} {found.verdict}")
