"""``logstore verify`` finds nothing where nothing is, and every damage by file and place."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from logstore.host import Host
from logstore.os_host import SystemFileSystem
from logstore.segments.rocketmq.messages.message import Message, decode_message
from logstore.segments.rocketmq.store import RocketMQStore, StoreOptions
from logstore.segments.rocketmq.tables.topics import TopicConfig
from logstore.testing import ManualClock
from tests.segments.rocketmq.drafts import draft
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases
from tests.segments.rocketmq.golden_records import stored_records
from tests.tools.command_line import CommandLine

CASES = [pytest.param(case, id=case.id) for case in golden_cases(without=("damage",))]
VERSIONS = ("4.9.8", "5.5.0")
#: what Java's recovery leaves in the files of a store that it has mended
LEFT_DAMAGED = ("flipped-body", "torn-tail", "consumequeue-ahead")


def findings(logstore: CommandLine, store: Path, *options: str) -> list[dict[str, Any]]:
    """Return what a verification says."""
    return logstore("verify", "--json", store, *options).json_lines


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_wrong_with_what_a_broker_left(case: GoldenCase, logstore: CommandLine) -> None:
    """Stores of both versions, with queues of every kind, index, timers, have no damage."""
    for store in case.stores.values():
        outcome = logstore("verify", store)
        assert outcome.exit_code == 0, outcome.out
        assert "no damage found" in outcome.lines[-1]


@pytest.mark.parametrize("version", VERSIONS)
def test_stores_that_a_broker_mended_are_sound(version: str, logstore: CommandLine) -> None:
    """But those in whose files the damaged bytes stay."""
    (case,) = golden_cases("damage", version=version)
    for name, store in case.stores.items():
        if not name.startswith(LEFT_DAMAGED):
            damage = [one for one in findings(logstore, store) if one["severity"] == "damage"]
            assert not damage, (name, damage)


@attrs.frozen
class Store:
    """A copy of a golden store to be damaged."""

    path: Path
    case: GoldenCase
    messages: list[Message]

    def log(self, physical_offset: int) -> tuple[str, int]:
        """Return (file, position) of a physical offset."""
        size = int(self.case.settings["mappedFileSizeCommitLog"])
        base = physical_offset - physical_offset % size
        return f"commitlog/{base:020}", physical_offset - base

    def unit(self, message: Message) -> tuple[str, int]:
        """Return (file, position) of the unit of a message."""
        size = int(self.case.settings["mappedFileSizeConsumeQueue"])
        place = 20 * message.queue_offset
        base = place - place % size
        folder = f"consumequeue/{message.topic}/{message.queue_id}"
        return f"{folder}/{base:020}", place - base

    def index(self, file: int = 1) -> str:
        """Return the name of an index file."""
        return f"index/{sorted((self.path / 'index').iterdir())[file].name}"

    def entry(self, number: int) -> int:
        """Return the position of an entry."""
        return 40 + 4 * int(self.case.settings["maxHashSlotNum"]) + 20 * number

    def read(self, file: str, position: int, size_bytes: int) -> bytes:
        """Return bytes of a file."""
        return (self.path / file).read_bytes()[position : position + size_bytes]

    def write(self, file: str, position: int, data: bytes) -> None:
        """Change bytes of a file."""
        with (self.path / file).open("r+b") as opened:
            opened.seek(position)
            opened.write(data)


Place = tuple[str, str, int | None]


def flip_body(store: Store) -> Place:
    """Change a byte of a body in the midst of the log."""
    message = store.messages[30]
    file, position = store.log(message.physical_offset)
    byte = store.read(file, position + 90, 1)
    store.write(file, position + 90, bytes([byte[0] ^ 4]))
    return "record", file, position


def misplace_record(store: Store) -> Place:
    """Let a record say another physical offset."""
    file, position = store.log(store.messages[31].physical_offset)
    store.write(file, position + 28, (7).to_bytes(8))
    return "record", file, position


def tear_tail(store: Store) -> Place:
    """Cut the last record."""
    last = store.messages[-1]
    file, position = store.log(last.physical_offset)
    store.write(file, position + 80, bytes(last.size_bytes - 80))
    return "tail", file, position


def wipe_blank(store: Store) -> Place:
    """Take the BLANK from the end of the first file."""
    in_first = [m for m in store.messages if store.log(m.physical_offset)[0].endswith("0" * 20)]
    file, position = store.log(in_first[-1].next_physical_offset)
    store.write(file, position, bytes(8))
    return "blank", file, position


def remove_log_file(store: Store) -> Place:
    """Take the second file of the commit log away."""
    size = int(store.case.settings["mappedFileSizeCommitLog"])
    (store.path / f"commitlog/{size:020}").unlink()
    return "hole", f"commitlog/{size:020}", None


def shorten_log_file(store: Store) -> Place:
    """Cut the length of the second file of the commit log."""
    size = int(store.case.settings["mappedFileSizeCommitLog"])
    (store.path / f"commitlog/{size:020}").open("r+b").truncate(size - 4096)
    return "size", f"commitlog/{size:020}", None


def add_strange_file(store: Store) -> Place:
    """Put a file with another name among the files of the commit log."""
    (store.path / "commitlog/notes.txt").write_text("x")
    return "name", "commitlog/notes.txt", None


def wrong_unit(store: Store) -> Place:
    """Let a unit lead to another message."""
    message = store.messages[40]
    file, position = store.unit(message)
    store.write(file, position, (store.messages[3].physical_offset).to_bytes(8))
    return "unit", file, position


def wrong_tags_code(store: Store) -> Place:
    """Change the tags code of a unit."""
    file, position = store.unit(store.messages[41])
    store.write(file, position + 12, (12345).to_bytes(8))
    return "unit", file, position


def wipe_unit(store: Store) -> Place:
    """Write zeros over a unit."""
    message = next(m for m in store.messages if m.queue_offset == 5)
    file, position = store.unit(message)
    store.write(file, position, bytes(20))
    return "unit-missing", file, position


def remove_queue(store: Store) -> Place:
    """Take a whole queue away."""
    message = store.messages[0]
    folder = store.path / f"consumequeue/{message.topic}/{message.queue_id}"
    folder.rename(store.path.parent / "taken-away")
    return "queue-missing", f"consumequeue/{message.topic}/{message.queue_id}", None


def loop_chain(store: Store) -> Place:
    """Let an entry of the index lead to itself."""
    store.write(store.index(), store.entry(4) + 16, (4).to_bytes(4))
    return "index-chain", store.index(), store.entry(4)


def wrong_hash(store: Store) -> Place:
    """Change the hash of an entry."""
    store.write(store.index(), store.entry(5), (99).to_bytes(4))
    return "index-entry", store.index(), store.entry(5)


def wrong_place(store: Store) -> Place:
    """Let an entry of the index lead to no message."""
    found = int.from_bytes(store.read(store.index(), store.entry(6) + 4, 8))
    store.write(store.index(), store.entry(6) + 4, (found + 1).to_bytes(8))
    return "index-entry", store.index(), store.entry(6)


def far_place(store: Store) -> Place:
    """Let an entry of the index lead far behind the log; all behind it are still checked."""
    store.write(store.index(), store.entry(7) + 4, (1 << 40).to_bytes(8))
    return "index-entry", store.index(), store.entry(7)


def wrong_seconds(store: Store) -> Place:
    """Change the time of an entry."""
    store.write(store.index(), store.entry(8) + 12, (77_777).to_bytes(4))
    return "index-entry", store.index(), store.entry(8)


def wrong_slot(store: Store) -> Place:
    """Let a slot lead to another chain."""
    number = int(store.case.settings["maxIndexNum"]) - 1
    store.write(store.index(), 40, number.to_bytes(4))
    key_hash = int.from_bytes(store.read(store.index(), store.entry(number), 4))
    is_right = not key_hash % int(store.case.settings["maxHashSlotNum"])
    if is_right:
        store.write(store.index(), 40, bytes(4))
    return "index-slot", store.index(), 40


def wrong_count(store: Store) -> Place:
    """Change how many slots the header says are in use."""
    store.write(store.index(), 32, (1).to_bytes(4))
    return "index-header", store.index(), 32


def remove_index_file(store: Store) -> Place:
    """Take an index file from the midst."""
    (store.path / store.index()).unlink()
    return "index-missing", "index", None


def late_checkpoint(store: Store) -> Place:
    """Let the checkpoint know of messages that the log does not have."""
    store.write("checkpoint", 8, (store.messages[-1].store_timestamp_ms + 1).to_bytes(8))
    return "checkpoint", "checkpoint", 8


def short_checkpoint(store: Store) -> Place:
    """Cut the checkpoint."""
    (store.path / "checkpoint").open("r+b").truncate(10)
    return "checkpoint", "checkpoint", None


def broken_table(store: Store) -> Place:
    """Break the JSON of a table."""
    (store.path / "config/consumerOffset.json").write_text('{"offsetTable":{')
    return "table", "config/consumerOffset.json", None


DAMAGES: list[Callable[[Store], Place]] = [
    flip_body, misplace_record, tear_tail, wipe_blank, remove_log_file, shorten_log_file,
    add_strange_file, wrong_unit, wrong_tags_code, wipe_unit, remove_queue, loop_chain, wrong_hash,
    wrong_place, far_place, wrong_seconds, wrong_slot, wrong_count, remove_index_file,
    late_checkpoint, short_checkpoint, broken_table,
]  # fmt: skip


def store_of(name: str, version: str, tmp_path: Path) -> Store:
    """Return a copy of a golden store."""
    (case,) = golden_cases(name, version=version)
    messages = [decode_message(record.data) for record in stored_records(case.store)]
    return Store(case.copy_store(tmp_path / "store"), case, messages)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_damage_is_found_at_its_place(
    version: str, damage: Callable[[Store], Place], tmp_path: Path, logstore: CommandLine
) -> None:
    """By kind, file and position, with a sentence that says more; and the exit status tells."""
    store = store_of("plain", version, tmp_path)
    kind, file, position = damage(store)
    outcome = logstore("verify", "--json", store.path)
    assert outcome.exit_code == 1
    found = [one for one in outcome.json_lines if one["severity"] == "damage"]
    places = [(one["kind"], one["file"], one["position"]) for one in found]
    assert (kind, file, position) in places, places
    assert all(len(one["reason"]) > 20 for one in found)


def test_one_damaged_entry_makes_no_others_wrong(tmp_path: Path, logstore: CommandLine) -> None:
    """Of a single wrong byte few findings come: each has to do with it."""
    for damage in (wrong_unit, wrong_tags_code, far_place, wrong_seconds, wrong_count):
        folder = tmp_path / damage.__name__
        folder.mkdir()
        store = store_of("plain", "5.5.0", folder)
        damage(store)
        found = [one for one in findings(logstore, store.path) if one["severity"] == "damage"]
        assert 1 <= len(found) <= 2, (damage.__name__, found)


def test_the_damaged_golden_stores_tell_what_was_done_to_them(logstore: CommandLine) -> None:
    """What the real brokers were given to recover is found by file and place."""
    for case in golden_cases("damage"):
        for pair in case.pairs:
            found = findings(logstore, pair.before)
            kinds = {one["kind"] for one in found} - {"abort"}
            if pair.name.startswith("flipped-body"):
                assert "record" in kinds
            elif pair.name.startswith("torn-tail"):
                assert {"tail", "unit-ahead"} <= kinds
            elif pair.name.startswith("consumequeue-ahead"):
                assert "unit-ahead" in kinds
            elif pair.name.startswith("consumequeue-behind"):
                assert "unit-missing" in kinds
            elif pair.name.startswith("no-consumequeue"):
                assert "queue-missing" in kinds
            elif pair.name.startswith("no-index"):
                assert kinds == {"index-missing"}
            elif pair.name == "no-checkpoint":
                assert kinds == {"checkpoint"}
            else:
                assert not kinds


def test_a_broken_extension_and_a_broken_batch_queue(tmp_path: Path, logstore: CommandLine) -> None:
    """Tags code in an extension, place in a unit of a batch: the unit is named."""
    (case,) = golden_cases("filters", version="4.9.8")
    store = case.copy_store(tmp_path / "ext")
    file = sorted(path for path in (store / "consumequeue_ext").rglob("0*") if path.is_file())[0]
    with file.open("r+b") as opened:
        opened.seek(2)
        opened.write((4711).to_bytes(8))
    (found,) = [one for one in findings(logstore, store) if one["severity"] == "damage"]
    topic, queue_id = file.parts[-3:-1]
    assert found["kind"] == "unit"
    assert found["file"].startswith(f"consumequeue/{topic}/{queue_id}/")
    (case,) = golden_cases("batch-queue")
    store = case.copy_store(tmp_path / "batch")
    file = sorted(path for path in (store / "batchconsumequeue").rglob("0*") if path.is_file())[0]
    with file.open("r+b") as opened:
        opened.seek(46 + 36)
        opened.write((99).to_bytes(2))
    (found,) = [one for one in findings(logstore, store) if one["severity"] == "damage"]
    assert (found["kind"], found["position"]) == ("unit", 46)
    assert str(file).endswith(found["file"])


def test_a_timer_chain_that_loops_is_found(tmp_path: Path, logstore: CommandLine) -> None:
    """The slot of the wheel is named whose units do not lead to an end."""
    (case,) = golden_cases("timer")
    store = case.copy_store(tmp_path / "store")
    lines = logstore("dump", "--json", store / "timerwheel").json_lines
    slot = next(one for one in lines if one.get("count", 0) > 1 and one["last"] > one["first"])
    with (store / "timerlog" / f"{0:020}").open("r+b") as file:
        file.seek(slot["last"] + 4)
        file.write(slot["last"].to_bytes(8))
    (found,) = [one for one in findings(logstore, store) if one["severity"] == "damage"]
    assert (found["kind"], found["file"]) == ("timer", "timerwheel")
    assert found["position"] == slot["position"]
    assert "loop" in found["reason"]


@pytest.mark.parametrize("is_over", [True, False])
def test_a_slot_leads_to_a_message_until_it_is_over(
    tmp_path: Path, logstore: CommandLine, *, is_over: bool
) -> None:
    """A crash may cost the log what was delivered long ago: the wheel is not cleared."""
    (case,) = golden_cases("timer")
    store = case.copy_store(tmp_path / "store")
    with (store / "timerlog" / f"{0:020}").open("r+b") as file:
        file.seek(28)
        file.write((1 << 40).to_bytes(8))
    with (store / "config" / "timercheck").open("r+b") as file:
        file.write((1 << 50 if is_over else 0).to_bytes(8))
    found = [one["reason"] for one in findings(logstore, store) if one["severity"] == "damage"]
    assert is_over or "behind the log" in found[0]
    assert len(found) == (not is_over)


def test_sizes_that_no_file_tells_can_be_said(tmp_path: Path, logstore: CommandLine) -> None:
    """With the wrong number of slots nothing fits; a wrong key is refused."""
    (case,) = golden_cases("plain", version="5.5.0")
    sizes = [f"--set={name}={case.settings[name]}" for name in ("maxHashSlotNum", "maxIndexNum")]
    assert logstore("verify", case.store, *sizes).exit_code == 0
    wrong = findings(logstore, case.store, "--set=maxHashSlotNum=51")
    assert {one["file"].split("/")[0] for one in wrong} == {"index"}
    assert "no setting of a store" in logstore("verify", case.store, "--set=nix=1").err
    assert "expected" in logstore("verify", case.store, "--set=maxIndexNum=x").err
    log_size = f"--set=mappedFileSizeCommitLog={2 * int(case.settings['mappedFileSizeCommitLog'])}"
    assert "size" in {one["kind"] for one in findings(logstore, case.store, log_size)}
    store = case.copy_store(tmp_path / "store")
    for file in (store / "index").iterdir():
        file.write_bytes(bytes(500))
    (note,) = findings(logstore, store)
    assert (note["severity"], note["kind"]) == ("note", "index-sizes")


@pytest.mark.parametrize("version", VERSIONS)
def test_files_cut_to_odd_lengths_are_told(
    version: str, tmp_path: Path, logstore: CommandLine
) -> None:
    """A unit of which only a part is left is missing; a log file that is too short is named."""
    for name in ("plain", "delay"):
        store = store_of(name, version, tmp_path / name)
        message = store.messages[0]
        file, position = store.unit(message)
        with (store.path / file).open("r+b") as opened:
            opened.truncate(position + 17)
        kinds = {one["kind"] for one in findings(logstore, store.path)}
        assert "unit-missing" in kinds
        (store.path / "commitlog" / f"{0:020}").open("r+b").truncate(701)
        found = findings(logstore, store.path)
        assert f"commitlog/{0:020}" in {one["file"] for one in found}


def test_a_delay_that_stands_in_an_extension_is_right(
    tmp_path: Path, logstore: CommandLine
) -> None:
    """With `enableConsumeQueueExt` a unit of the schedule topic leads to when it is due."""
    clock = ManualClock()
    host = Host(SystemFileSystem(), clock, random.Random(0))
    settings = {"enableConsumeQueueExt": "true", "mappedFileSizeConsumeQueueExt": "1000"}
    sizes = {"mappedFileSizeCommitLog": "4096", "maxHashSlotNum": "5", "maxIndexNum": "11"}
    options = StoreOptions(settings={**settings, **sizes, "mappedFileSizeConsumeQueue": "400"})
    store = RocketMQStore(host, str(tmp_path / "store"), options)
    for number in range(10):
        properties = {"DELAY": str(number % 3 + 1), "TAGS": "a"} if number % 4 else {"TAGS": "b"}
        assert store.put_message(draft(properties=properties)).is_ok
        clock.advance(7)
    store.topic_table.put(TopicConfig("TopicTest"))
    store.topic_table.persist()
    store.close()
    sets = [f"--set={name}={value}" for name, value in (settings | sizes).items()]
    assert findings(logstore, tmp_path / "store", *sets) == []
    unit = tmp_path / "store" / "consumequeue" / "SCHEDULE_TOPIC_XXXX" / "1" / f"{0:020}"
    with unit.open("r+b") as file:
        file.seek(12)
        file.write(bytes.fromhex("8000000000000014"))  # the second one's place in the extension
    (damage,) = findings(logstore, tmp_path / "store", *sets)
    assert (damage["kind"], damage["position"]) == ("unit", 0)
    due = tmp_path / "store" / "consumequeue_ext" / "SCHEDULE_TOPIC_XXXX" / "0" / f"{0:020}"
    before = due.read_bytes()
    shutil.rmtree(due.parent)
    assert logstore("reindex", tmp_path / "store", *sets).exit_code == 0
    assert findings(logstore, tmp_path / "store", *sets) == []
    assert due.read_bytes() == before


@pytest.mark.parametrize("is_deleted", [True, False])
def test_what_is_left_of_a_deleted_topic_is_noted(
    tmp_path: Path, logstore: CommandLine, *, is_deleted: bool
) -> None:
    """Nobody reads its queues any more, whatever stands there."""
    host = Host(SystemFileSystem(), ManualClock(), random.Random(0))
    sizes = {"mappedFileSizeCommitLog": "4096", "maxHashSlotNum": "5", "maxIndexNum": "11"}
    options = StoreOptions(settings={**sizes, "mappedFileSizeConsumeQueue": "400"})
    store = RocketMQStore(host, str(tmp_path / "store"), options)
    for name in ("Gone", "TopicTest"):
        store.topic_table.put(TopicConfig(name))
    for number in range(5):
        assert store.put_message(draft("Gone", b"%d" % number)).is_ok
    if is_deleted:
        store.topic_table.remove("Gone")
    store.topic_table.persist()
    store.close()
    with (tmp_path / "store/consumequeue/Gone/0" / f"{0:020}").open("r+b") as file:
        file.seek(40)
        file.write(bytes(20))
    sets = [f"--set={name}={value}" for name, value in options.settings.items()]
    found = findings(logstore, tmp_path / "store", *sets)
    assert {one["severity"] for one in found} == {"note" if is_deleted else "damage"}
    assert all("the topic was deleted" in one["reason"] for one in found) is is_deleted


def test_topics_that_are_in_no_table_are_noted(tmp_path: Path, logstore: CommandLine) -> None:
    """Their queues are there, and clients cannot read them."""
    store = GoldenCase("plain", "5.5.0").copy_store(tmp_path / "store")
    table = store / "config/topics.json"
    topics = json.loads(table.read_text())
    topic = next(
        name for name in topics["topicConfigTable"] if (store / f"consumequeue/{name}").exists()
    )
    del topics["topicConfigTable"][topic]
    table.write_text(json.dumps(topics))
    (found,) = findings(logstore, store)
    assert (found["severity"], found["file"]) == ("note", "config/topics.json")
    assert f"has no topic {topic}, of which " in found["reason"]
    for file in (table, store / "config/topics.json.bak"):
        file.unlink(missing_ok=True)
    (found,) = findings(logstore, store)
    assert found["reason"].startswith("is missing or cannot be read: clients can read no topic")
