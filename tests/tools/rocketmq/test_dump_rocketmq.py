"""``logstore dump`` prints what stands in the files of real brokers' RocketMQ stores."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from logstore.segments.rocketmq.messages.message import decode_message
from logstore.segments.rocketmq.queues.consume_queue_unit import UNIT
from logstore.segments.rocketmq.tables.java_json import parse_json
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases, stored_cases
from tests.segments.rocketmq.golden_records import stored_records
from tests.tools.command_line import CommandLine

ALL = [pytest.param(case, id=case.id) for case in golden_cases(without=("wire", "wire-cpp"))]
STORED = [pytest.param(case, id=case.id) for case in stored_cases(without=("wire", "wire-cpp"))]


def payload(line: dict[str, Any], name: str) -> bytes:
    """Return bytes as they were before they became JSON."""
    if f"{name}Base64" in line:
        return base64.b64decode(line[f"{name}Base64"])
    return str(line[name]).encode()


@pytest.mark.parametrize("case", ALL)
def test_every_file_of_every_store_is_known(case: GoldenCase, logstore: CommandLine) -> None:
    """Each file that a broker left can be dumped, and nothing in it is wrong."""
    for store in case.stores.values():
        if "flipped" in str(store) or "torn" in str(store):
            continue  # their remains are no records
        files = [path for path in sorted(store.rglob("*")) if path.is_file()]
        outcome = logstore("dump", "--json", *files)
        assert outcome.exit_code == 0, outcome.err
        assert {line["file"] for line in outcome.json_lines} == {str(path) for path in files}


@pytest.mark.parametrize("case", STORED)
def test_the_messages_are_those_in_the_commit_log(case: GoldenCase, logstore: CommandLine) -> None:
    """Each message comes with all its fields, its properties and its body as it was sent."""
    files = sorted((case.store / "commitlog").iterdir())
    outcome = logstore("dump", "--records", "--json", *files)
    found = [line for line in outcome.json_lines if line["kind"] == "message"]
    messages = [decode_message(record.data) for record in stored_records(case.store)]
    assert [line["physicalOffset"] for line in found] == [one.physical_offset for one in messages]
    for line, message in zip(found, messages, strict=True):
        assert (line["topic"], line["queueId"]) == (message.topic, message.queue_id)
        assert line["queueOffset"] == message.queue_offset
        assert line["properties"] == message.properties
        assert payload(line, "body") == message.plain_body()
        assert line["storeTimestamp"] == message.store_timestamp_ms
        assert line["bornHost"] == str(message.born_host)
        assert line["msgId"] == message.offset_message_id
        assert line["bodyCrc"] == message.body_crc


@pytest.mark.parametrize("case", STORED)
def test_the_units_are_those_in_the_queues(case: GoldenCase, logstore: CommandLine) -> None:
    """Each unit comes with its queue offset; zeros behind the last one are none."""
    for file in sorted((case.store / "consumequeue").rglob("0*")):
        if not file.is_file():
            continue
        units = list(UNIT.iter_unpack(file.read_bytes()))
        while units and not any(units[-1]):
            units.pop()
        lines = [
            line for line in logstore("dump", "--json", file).json_lines if line["kind"] == "unit"
        ]
        first = int(file.name) // 20
        assert [
            (line["queueOffset"], line["physicalOffset"], line["size"], line["tagsCode"])
            for line in lines
        ] == [(first + index, *unit) for index, unit in enumerate(units)]


def test_an_index_file_tells_its_entries(logstore: CommandLine) -> None:
    """How many slots it has is found out; each entry comes with slot, place and chain."""
    (case,) = golden_cases("properties", version="5.5.0")
    slots, entries = int(case.settings["maxHashSlotNum"]), int(case.settings["maxIndexNum"])
    for file in sorted((case.store / "index").iterdir()):
        data = file.read_bytes()
        header, *found = [
            line for line in logstore("dump", "--json", file).json_lines if line["kind"] != "file"
        ]
        assert (header["maxHashSlotNum"], header["maxIndexNum"]) == (slots, entries)
        assert header["indexCount"] == len(found) + 1
        for line in found:
            position = 40 + 4 * slots + 20 * line["number"]
            assert line["position"] == position
            assert line["hash"] == int.from_bytes(data[position : position + 4])
            assert line["slot"] == line["hash"] % slots
            assert line["physicalOffset"] == int.from_bytes(data[position + 4 : position + 12])
            assert line["previous"] == int.from_bytes(data[position + 16 : position + 20])


def test_tables_are_proper_json(logstore: CommandLine) -> None:
    """What Java writes with bare keys is readable for every program."""
    (case,) = golden_cases("groups", version="4.9.8")
    file = case.store / "config" / "consumerOffset.json"
    _, line = logstore("dump", "--json", file).json_lines
    table = parse_json(file.read_text())["offsetTable"]
    found = json.loads(line["offsetTable"])
    assert found == {
        name: {str(number): offset for number, offset in queues.items()}
        for name, queues in table.items()
    }
    assert found


def test_offsets_select(logstore: CommandLine) -> None:
    """Of a queue by queue offset, of the commit log by physical offset."""
    (case,) = golden_cases("plain", version="5.5.0")
    queue = sorted(path for path in (case.store / "consumequeue").rglob("0*") if path.is_file())[0]
    lines = logstore("dump", "--json", "--offsets", "3:5", queue).json_lines
    assert [line["queueOffset"] for line in lines[1:]] == [3, 4]
    places = [record.physical_offset for record in list(stored_records(case.store))][4:6]
    log = case.store / "commitlog" / f"{0:020}"
    outcome = logstore("dump", "--json", "--offsets", f"{places[0]}:{places[1] + 1}", log)
    assert [line["physicalOffset"] for line in outcome.json_lines[1:]] == places


def test_a_copied_file_needs_its_kind(tmp_path: Path, logstore: CommandLine) -> None:
    """A number alone tells nothing: the error says what to say."""
    (case,) = golden_cases("plain", version="4.9.8")
    copy = tmp_path / f"{0:020}"
    shutil.copy(case.store / "commitlog" / copy.name, copy)
    refused = logstore("dump", copy)
    assert refused.exit_code == 1
    assert "--kind" in refused.err
    dumped = logstore("dump", "--json", "--kind", "commitlog", copy)
    assert dumped.exit_code == 0
    assert dumped.json_lines[-1]["kind"] == "blank"


def test_a_damaged_commit_log_is_read_behind_the_damage(
    tmp_path: Path, logstore: CommandLine
) -> None:
    """Bad bytes are a problem at their position; the messages behind them come all the same."""
    (case,) = golden_cases("plain", version="5.5.0")
    store = case.copy_store(tmp_path / "store")
    records = list(stored_records(case.store))
    log = store / "commitlog" / f"{0:020}"
    data = bytearray(log.read_bytes())
    data[records[3].physical_offset + 100] ^= 1
    log.write_bytes(data)
    outcome = logstore("dump", "--json", log)
    assert outcome.exit_code == 1
    assert f"position {records[3].physical_offset}: " in outcome.err
    found = {line["physicalOffset"] for line in outcome.json_lines if line["kind"] == "message"}
    in_file = {record.physical_offset for record in records if record.physical_offset < len(data)}
    assert found == in_file - {records[3].physical_offset}


def test_the_file_of_a_lock_that_is_held_is_let_alone(
    tmp_path: Path, logstore: CommandLine
) -> None:
    """A tool beside a broker in one process must not open it: it would let the lock go."""
    from logstore.os_host import system_host

    path = tmp_path / "lock"
    lock = system_host().fs.lock(str(path))
    outcome = logstore("dump", path)
    lock.release()
    assert outcome.exit_code == 1
    assert "this process holds its lock" in outcome.err
