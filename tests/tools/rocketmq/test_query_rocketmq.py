"""``logstore query`` finds every message of real brokers' stores, and shows the road to it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from logstore.os_host import system_host
from logstore.segments.rocketmq.messages.message import Message, decode_message
from logstore.segments.rocketmq.settings.release import Release
from logstore.tools.inspection.rocketmq.key_search import KeyQuestion, explain_key
from logstore.tools.inspection.rocketmq.log_end import FileEnd, log_ends
from logstore.tools.inspection.rocketmq.stored_files import StoredFiles
from logstore.tools.inspection.rocketmq.stored_store import StoredStore
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases
from tests.segments.rocketmq.golden_records import stored_records
from tests.tools.command_line import CommandLine

CASES = [
    pytest.param(case, id=case.id)
    for case in golden_cases("plain", "properties", "filters", "batch-queue", "ipv6", "version-2")
]


def messages_of(case: GoldenCase) -> list[Message]:
    """Return every message of the commit log."""
    return [decode_message(record.data) for record in stored_records(case.store)]


def step(outcome: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the last step of that name."""
    found: dict[str, Any]
    (*_, found) = [one for one in outcome["steps"] if one["step"] == name]
    return found


@pytest.mark.parametrize("case", CASES)
def test_by_queue_offset(case: GoldenCase, logstore: CommandLine) -> None:
    """The unit leads to the message, for every seventh message a consumer got."""
    for message in case.expected[::7]:
        outcome = logstore(
            "query", case.store, "--json", "--topic", message["topic"],
            "--queue", message["queueId"], "--offset", message["queueOffset"],
        )  # fmt: skip
        assert outcome.exit_code == 0, outcome.err
        found = step(outcome.json, "message")
        assert (found["topic"], found["queueId"]) == (message["topic"], message["queueId"])
        unit = step(outcome.json, "unit")
        assert unit["physicalOffset"] == found["physicalOffset"]
        data = (case.store / unit["file"]).read_bytes()[unit["position"] :]
        assert int.from_bytes(data[:8]) == found["physicalOffset"]


def test_a_log_that_was_closed_cleanly_is_not_read_for_a_queue_offset(
    tmp_path: Path, logstore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it ends matters after a crash, or where the queue leads to no message at its end."""
    (case,) = golden_cases("plain", version="5.5.0")
    store = case.copy_store(tmp_path / "store")
    message = case.expected[-1]
    question = (
        "query", store, "--json", "--topic", message["topic"],
        "--queue", message["queueId"], "--offset", message["queueOffset"],
    )  # fmt: skip
    wanted = logstore(*question).json
    looks: list[object] = []

    def noted(log: StoredFiles) -> Iterator[FileEnd]:
        looks.append(log)
        return log_ends(log)

    monkeypatch.setattr("logstore.tools.inspection.rocketmq.explanation.log_ends", noted)
    assert logstore(*question).json == wanted
    assert not looks
    (store / "abort").touch()
    assert logstore(*question).json == wanted
    assert len(looks) == 1
    (store / "abort").unlink()
    last = max(messages_of(case), key=lambda one: one.physical_offset)
    path = max((store / "commitlog").iterdir())
    with path.open("r+b") as file:
        file.seek(last.physical_offset - int(path.name))
        file.write(bytes(4))
    asked = ("--topic", last.topic, "--queue", last.queue_id, "--offset", last.queue_offset)
    cut = logstore("query", store, "--json", *asked)
    assert (cut.exit_code, cut.json["outcome"]) == (1, "at-end")
    assert len(looks) == 2


@pytest.mark.parametrize("case", CASES)
def test_by_place_and_by_id(case: GoldenCase, logstore: CommandLine) -> None:
    """The same message by physical offset, by a byte in its midst, and by its id."""
    for message in messages_of(case)[::11]:
        for question in (
            ("--physical-offset", message.physical_offset),
            ("--physical-offset", message.next_physical_offset - 1),
            ("--message-id", message.offset_message_id),
        ):
            outcome = logstore("query", case.store, "--json", *question)
            assert outcome.exit_code == 0, outcome.err
            found = step(outcome.json, "message")
            assert found["physicalOffset"] == message.physical_offset
            assert found["properties"] == message.properties
            place = step(outcome.json, "commit log")
            assert int(place["file"][-20:]) + place["position"] == message.physical_offset


@pytest.mark.parametrize("case", CASES)
def test_by_key_and_by_unique_key(case: GoldenCase, logstore: CommandLine) -> None:
    """Every message with the key and no other, newest first; the index's chain is shown."""
    messages = messages_of(case)
    keyed = [message for message in messages if message.keys and message.unique_key][::9]
    for message in keyed:
        key = message.keys[-1]
        outcome = logstore(
            "query", case.store, "--json", "--topic", message.topic, "--key", key, "--count", 500
        )
        assert outcome.exit_code == 0, outcome.err
        expected = [
            one.physical_offset
            for one in reversed(messages)
            if one.topic == message.topic and (key in one.keys or key == one.unique_key)
        ]
        assert [one["physicalOffset"] for one in outcome.json["messages"]] == expected
        assert "slot" in step(outcome.json, "hash")
        assert any(one["step"] == "index file" and one["chain"] for one in outcome.json["steps"])
        unique = logstore(
            "query", case.store, "--json", "--topic", message.topic,
            "--unique-key", message.unique_key,
        )  # fmt: skip
        assert message.physical_offset in [one["physicalOffset"] for one in unique.json["messages"]]


@pytest.mark.parametrize("case", golden_cases("plain", "filters"), ids=lambda case: case.id)
def test_by_time(case: GoldenCase, logstore: CommandLine) -> None:
    """The first message that was stored at the time or later; an empty rest says what is newest."""
    groups = itertools.groupby(
        sorted(messages_of(case), key=lambda one: (one.topic, one.queue_id, one.queue_offset)),
        key=lambda one: (one.topic, one.queue_id),
    )
    for (topic, queue_id), found in groups:
        messages = list(found)
        asked_ms = messages[len(messages) // 2].store_timestamp_ms
        outcome = logstore(
            "query", case.store, "--json", "--topic", topic, "--queue", queue_id,
            "--time", asked_ms,
        )  # fmt: skip
        first = next(one for one in messages if one.store_timestamp_ms >= asked_ms)
        assert step(outcome.json, "message")["queueOffset"] == first.queue_offset
        late = logstore("query", case.store, "--topic", topic, "--queue", queue_id, "--time", 2**42)
        assert late.exit_code == 1
        assert "every message is older" in late.out
        newest = messages[-1].queue_offset
        nearest = f"4.x answers with the nearest one: {newest}"
        assert (nearest in late.out) == (case.version == "4.9.8")


def test_where_there_is_no_index_the_commit_log_is_read() -> None:
    """A key is found all the same, and the road says how."""
    (case,) = golden_cases("properties", version="4.9.8")
    store = StoredStore(system_host().fs, str(case.store))
    store.index_paths = []
    message = next(one for one in messages_of(case) if one.keys)
    found, messages = explain_key(store, KeyQuestion(message.topic, message.keys[0]))
    assert message.physical_offset in [one.physical_offset for one in messages]
    assert found.steps[0].name == "index"
    assert "commit log is read" in found.steps[0].sentence
    assert store.release is Release.V4


def test_a_loop_in_a_chain_is_followed_once(tmp_path: Path, logstore: CommandLine) -> None:
    """The road says that the chain is broken, and how to mend it."""
    (case,) = golden_cases("properties", version="5.5.0")
    store = case.copy_store(tmp_path / "store")
    message = next(one for one in messages_of(case) if one.keys)
    question = ("--topic", message.topic, "--key", message.keys[0])
    asked = logstore("query", store, "--json", *question).json
    (*_, place) = [
        one for one in asked["steps"] if one["step"] == "index file" and one["physicalOffsets"]
    ]
    number = place["chain"][0]
    position = 40 + 4 * int(case.settings["maxHashSlotNum"]) + 20 * number
    with (store / place["file"]).open("r+b") as file:
        file.seek(position + 16)
        file.write(number.to_bytes(4))
    again = logstore("query", store, *question)
    assert f"it is broken: entry {number} leads to {number}" in again.out


def test_what_cannot_be_found_is_said(tmp_path: Path, logstore: CommandLine) -> None:
    """Beyond the end, an unknown queue, another broker's id, no message id at all, no topic."""
    (case,) = golden_cases("plain", version="5.5.0")
    message = messages_of(case)[0]
    queue = ("--topic", message.topic, "--queue", message.queue_id)
    assert "the queue ends at" in logstore("query", case.store, *queue, "--offset", 99999).out
    unknown = logstore("query", case.store, "--topic", "nix", "--queue", 0, "--offset", 0)
    assert "there is no queue nix-0; topics with queues: " in unknown.err
    assert len(unknown.err) < 400
    high = logstore("query", case.store, "--topic", message.topic, "--queue", 77, "--offset", 0)
    assert f"there is no queue {message.topic}-77; {message.topic} has queues 0, 1" in high.err
    near = logstore("query", case.store, "--topic", message.topic[:-1], "--queue", 0, "--offset", 0)
    assert "did you mean" in near.err
    other = "0A000001" + message.offset_message_id[8:]
    assert "another broker's id" in logstore("query", case.store, "--message-id", other).out
    assert "has 3 characters" in logstore("query", case.store, "--message-id", "abc").err
    assert "say --topic" in logstore("query", case.store, "--key", "k").err
    assert "say one of" in logstore("query", case.store).err
    store = case.copy_store(tmp_path / "store")
    file = next(path for path in sorted((store / "consumequeue").rglob("0*")) if path.is_file())
    data = bytearray(file.read_bytes())
    data[40:60] = data[60:80]
    file.write_bytes(data)
    topic, queue_id = file.parts[-3:-1]
    wrong = logstore("query", store, "--topic", topic, "--queue", queue_id, "--offset", 2)
    assert wrong.exit_code == 1
    assert "the unit leads to another message" in wrong.err
