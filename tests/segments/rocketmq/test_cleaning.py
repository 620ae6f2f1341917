"""Old files go by age, by hand or for want of space; what leads into them goes with them."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import attrs
import pytest

from logstore.host import Host, VolumeSpace
from logstore.os_host import SystemFileSystem
from logstore.segments.rocketmq.putting.put_result import PutMessageStatus
from logstore.segments.rocketmq.store import RocketMQStore
from logstore.segments.rocketmq.upkeep.cleaning import MANUAL_ROUNDS, CleaningRule
from logstore.segments.rocketmq.upkeep.disk_usage import DiskRule, DiskState, used_ratio
from logstore.segments.rocketmq.upkeep.running_flags import RunningFlag
from logstore.testing import ManualClock, SimulatedDisk, SimulatedHost
from tests.segments.rocketmq.drafts import draft
from tests.segments.rocketmq.small_store import bodies, small_store

HOUR_MS = 3_600_000


class MeasuredDisk(SimulatedDisk):
    """A volume that is as full as a test says."""

    used_percent = 10.0
    reserved_bytes = 0

    def volume_space(self, path: str) -> VolumeSpace:
        """Return a space of which that part is in use."""
        del path
        usable_bytes = int(1000 * (100 - self.used_percent))
        return VolumeSpace(100_000 + self.reserved_bytes, usable_bytes, self.reserved_bytes)


class MeasuredHost(SimulatedHost):
    """A world with such a volume."""

    def __init__(self) -> None:
        clock = ManualClock()
        Host.__init__(self, MeasuredDisk(clock), clock, random.Random(0))

    def use(self, percent: float) -> None:
        """Let that part of the volume be in use."""
        assert isinstance(self.fs, MeasuredDisk)
        self.fs.used_percent = percent


@pytest.mark.parametrize(
    ("percent", "ratio"), [(0, 0.0), (50, 0.5), (50.001, 0.51), (99.5, 1.0), (100, 1.0)]
)
def test_space_that_others_may_fill_is_neither_used_nor_free(percent: float, ratio: float) -> None:
    """Of a volume with a share for root or a quota Java counts what this process can have."""
    disk = MeasuredDisk(ManualClock())
    disk.used_percent = percent
    assert used_ratio(disk, "/store") == ratio
    disk.reserved_bytes = 900_000
    assert used_ratio(disk, "/store") == ratio


def test_a_folder_that_is_not_there_yet_is_on_the_volume_of_the_store(tmp_path: Path) -> None:
    """A new store has no folder of a commit log, and its broker tells how full the disk is."""
    there = used_ratio(SystemFileSystem(), str(tmp_path))
    assert 0 < there <= 1
    assert used_ratio(SystemFileSystem(), str(tmp_path / "commitlog" / "deeper")) == there


@pytest.fixture
def host() -> MeasuredHost:
    """An empty world with room."""
    return MeasuredHost()


def filled(host: SimulatedHost, settings: Mapping[str, str] | None = None) -> RocketMQStore:
    """Open a store with 36 messages in twelve commit log files, all dispatched."""
    store = small_store(host, settings={"deleteWhen": "25", **(settings or {})})
    for number in range(36):
        text = {"KEYS": f"k{number}"}
        store.put_message(draft(body=b"%02d" % number + bytes(1000), properties=text))
        host.clock.advance(1000)
    store.dispatch()
    store.write_derived()
    assert len(store.commit_log.files()) == 12
    return store


def first_bodies(store: RocketMQStore) -> list[int]:
    """Return the numbers of the messages that can be read."""
    return [int(body[:2]) for body in bodies(store)]


def test_nothing_goes_while_nothing_is_due(host: MeasuredHost) -> None:
    """Neither old nor new files go outside of the hours with room on the disk."""
    store = filled(host)
    host.clock.advance(100 * HOUR_MS)
    assert store.cleaning.run() == 0
    assert len(store.commit_log.files()) == 12


def test_expired_files_go_in_the_hours_that_are_set(host: MeasuredHost) -> None:
    """At most ten a round, oldest first, never the last one; queues and index follow."""
    hour = datetime.fromtimestamp(host.clock.wall_ms() / 1000).astimezone().hour
    store = filled(host, {"deleteWhen": f"{hour:02d};{(hour + 1) % 24:02d}"})
    assert store.cleaning.run() == 0, "none is 72 hours old"
    host.clock.advance(72 * HOUR_MS)
    assert store.cleaning.run() == 10
    assert store.commit_log.min_physical_offset == 10 * 4096
    assert store.min_queue_offset("TopicTest", 0) == 30
    assert first_bodies(store) == list(range(30, 36))
    queue = store.consume_queues.get("TopicTest", 0)
    assert queue is not None
    assert queue.queue_files()[0].first_queue_offset == 30
    assert store.index.files[0].end_physical_offset >= 10 * 4096
    assert store.cleaning.run() == 1
    assert store.cleaning.run() == 0, "the last file stays"
    store.close()
    assert first_bodies(small_store(host)) == list(range(33, 36))


def test_a_removal_by_hand_goes_on_for_some_rounds(host: MeasuredHost) -> None:
    """Expired files go at any hour once somebody asks, and no more when the rounds are over."""
    store = filled(host)
    store.cleaning.request_removal()
    assert store.cleaning.run() == 0, "they are not expired"
    assert store.cleaning.manual_rounds == MANUAL_ROUNDS - 1
    host.clock.advance(72 * HOUR_MS)
    assert store.cleaning.run() == 10


def test_above_the_limit_expired_files_go_at_any_hour(host: MeasuredHost) -> None:
    """diskMaxUsedSpaceRatio: files that are not expired stay."""
    store = filled(host)
    host.use(76)
    assert store.cleaning.run() == 0
    host.clock.advance(72 * HOUR_MS)
    assert store.cleaning.run() == 10
    assert store.running_flags.is_writeable


def test_above_the_force_ratio_files_go_unexpired(
    host: MeasuredHost, caplog: pytest.LogCaptureFixture
) -> None:
    """Who has not read what goes is named; puts are still taken."""
    store = filled(host)
    store.consumer_offsets.commit("slow", "TopicTest", 0, 3)
    store.consumer_offsets.commit("done", "TopicTest", 0, 36)
    host.use(86)
    with caplog.at_level(logging.WARNING):
        assert store.cleaning.run() == 10
    assert "slow" in caplog.text
    assert "done" not in caplog.text
    assert store.put_message(draft()).is_ok


def test_without_leave_nothing_goes_by_force(
    host: MeasuredHost, caplog: pytest.LogCaptureFixture
) -> None:
    """cleanFileForciblyEnable=false: unexpired files stay, and it is told that the disk fills."""
    store = filled(host, {"cleanFileForciblyEnable": "false"})
    host.use(95)
    with caplog.at_level(logging.WARNING):
        assert store.cleaning.run() == 0
    assert "cleanFileForciblyEnable" in caplog.text


def test_a_full_disk_refuses_puts_until_there_is_room(host: MeasuredHost) -> None:
    """Above the warning ratio DISK_FULL is set; it is cleared as soon as the cause is gone."""
    store = filled(host, {"cleanFileForciblyEnable": "false"})
    host.use(91)
    store.cleaning.run()
    refused = store.put_message(draft())
    assert refused.status is PutMessageStatus.SERVICE_NOT_AVAILABLE
    assert "DISK_FULL" in refused.reason
    host.use(88)
    store.cleaning.run()
    assert store.running_flags.flags & RunningFlag.DISK_FULL, "not before the force ratio"
    host.use(50)
    store.cleaning.run()
    assert store.put_message(draft()).is_ok


def test_it_runs_by_the_clock(host: MeasuredHost) -> None:
    """A minute after the start for the first time, every ten seconds from then on."""
    store = filled(host)
    host.use(95)
    store.tick()
    assert store.running_flags.is_writeable
    host.clock.advance(30_000)
    store.tick()
    assert not store.running_flags.is_writeable
    host.use(10)
    host.clock.advance(9_000)
    store.tick()
    assert not store.running_flags.is_writeable
    host.clock.advance(1_000)
    store.tick()
    assert store.running_flags.is_writeable


def test_queues_without_a_message_can_be_removed(host: MeasuredHost) -> None:
    """Those of which all messages are gone, but for system topics and empty ones."""
    store = small_store(host)
    for topic in ("Old", "SCHEDULE_TOPIC_XXXX"):
        store.put_message(draft(topic, bytes(1000)), is_delivery=True)
    for _ in range(9):
        store.put_message(draft("New", bytes(1000)))
    store.dispatch()
    store.write_derived()
    store.commit_log.delete_below(4096)
    store.cleaning.follow_commit_log()
    removed = store.cleaning.remove_expired_queues(lambda topic: topic == "SCHEDULE_TOPIC_XXXX")
    assert removed == [("Old", 0)]
    assert store.consume_queues.get("Old", 0) is None
    assert store.consume_queues.get("New", 0) is not None


@attrs.frozen
class Fullness:
    """How full two volumes are, and what follows."""

    log: float
    queues: float
    state: DiskState


@pytest.mark.parametrize(
    "case",
    [
        Fullness(0.75, 0.75, DiskState.FINE),
        Fullness(0.751, 0.1, DiskState.ABOVE_LIMIT),
        Fullness(0.1, 0.751, DiskState.ABOVE_LIMIT),
        Fullness(0.851, 0.1, DiskState.FORCED),
        Fullness(0.1, 0.851, DiskState.FORCED),
        Fullness(0.901, 0.1, DiskState.FULL),
        Fullness(0.1, 0.901, DiskState.FULL),
        Fullness(-1.0, -1.0, DiskState.FINE),
    ],
    ids=str,
)
def test_how_full_a_disk_may_be(case: Fullness) -> None:
    """Limits are exclusive; the fuller of the two volumes decides."""
    assert DiskRule().state(case.log, case.queues) is case.state


def test_the_hours_of_the_day_are_read_as_java_writes_them() -> None:
    """Two digits each with semicolons between them; what is no number counts for nothing."""
    assert CleaningRule.hours_of("04") == {4}
    assert CleaningRule.hours_of("04; 16;x") == {4, 16}
    assert datetime.fromtimestamp(0, UTC).hour == 0


def test_a_crash_gives_no_message_the_place_of_one_that_is_gone() -> None:
    """Neither the unit nor the message is there of some, which a sick disk may have come to."""
    host = SimulatedHost()
    store = small_store(host)
    for first, end in ((0, 3), (3, 40)):
        for number in range(first, end):
            result = store.put_message(draft(body=b"%02d" % number + bytes(300)))
            assert result.queue_offset == number
        store.dispatch()
        if not first:
            store.consume_queues.flush()
            store.checkpoint.logics_physical_offset = store.commit_log.flushed_where
            store.checkpoint.flush()
        store.commit_log.flush()
    store.commit_log.delete_below(store.commit_log.files()[-1].base_offset)
    store.abandon()
    host.power_loss()
    store = small_store(host)
    found = [body[:2] for body in bodies(store)]
    assert found == [b"%02d" % number for number in range(40 - len(found), 40)]
    queue = store.queue("TopicTest", 0)
    assert (queue.start_offset, store.max_queue_offset("TopicTest", 0)) == (40 - len(found), 40)
    assert store.put_message(draft()).queue_offset == 40
