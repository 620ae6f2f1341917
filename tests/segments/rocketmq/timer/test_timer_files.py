"""The time wheel and the timer log as files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.errors import CorruptFileError, WriteFailedError
from logstore.host import read_file, write_file
from logstore.segments.rocketmq.timer.timer_log import TimerLog
from logstore.segments.rocketmq.timer.timer_metrics import TimerMetrics
from logstore.segments.rocketmq.timer.timer_unit import BLANK_MAGIC, TimerUnit, is_blank
from logstore.segments.rocketmq.timer.timer_wheel import NO_SLOT, Slot, TimerWheel
from logstore.testing.crash_points import every_power_loss
from logstore.testing.simulated_host import SimulatedHost

WHEEL = "/store/timerwheel"


def wheel_of(host: SimulatedHost, slot_count: int = 50, precision_ms: int = 1000) -> TimerWheel:
    """Open a small wheel."""
    return TimerWheel(host, WHEEL, slot_count=slot_count, precision_ms=precision_ms)


def unit_of(number: int) -> TimerUnit:
    """Return a unit that can be told from others."""
    return TimerUnit(-1, 1, 1000, 5000 + number, number * 100, 100, 7)


def append(log: TimerLog, number: int) -> int:
    """Append one such unit."""
    assert log.reserve(3)[1] >= 1
    return log.append(unit_of(number).encode())


def test_slot_of_its_tick() -> None:
    """A slot is that of one tick; the same place in another round of the ring is empty."""
    wheel = wheel_of(SimulatedHost())
    wheel.put(12_345, 0, 52, 2)
    assert wheel.slot(12_999) == Slot(12_000, 0, 52, 2)
    assert wheel.slot(13_000) == NO_SLOT
    assert wheel.slot(112_345) == NO_SLOT
    assert wheel.raw_slot(112_345) == Slot(12_000, 0, 52, 2)


def test_lasting() -> None:
    """What was flushed is there after a power loss, what was not is as it was."""
    host = SimulatedHost()
    wheel = wheel_of(host)
    wheel.put(5000, 0, 0, 1)
    wheel.put(6000, 52, 52, 1)
    wheel.put(9000, 104, 104, 1)
    wheel.flush()
    wheel.put(5000, 0, 156, 2)
    host.power_loss()
    again = wheel_of(host)
    assert [slot.time_ms for _, slot in again.slots()] == [5000, 6000, 9000]
    assert again.slot(5000) == Slot(5000, 0, 0, 1)
    assert len(read_file(host.fs, WHEEL)) == 50 * 2 * 32


def test_wrong_size() -> None:
    """A wheel of another number of slots is refused, with what to do, and stays as it is."""
    host = SimulatedHost()
    host.fs.make_directory("/store")
    write_file(host.fs, WHEEL, bytes(63) + b"x")
    with pytest.raises(CorruptFileError, match=r"timerwheel: is 64 bytes.*move it away"):
        wheel_of(host)
    assert read_file(host.fs, WHEEL) == bytes(63) + b"x"


def test_a_power_loss_while_it_is_made() -> None:
    """It is made again, whatever is left of it: no messages have to wait for somebody to look."""
    for point in every_power_loss(lambda host: wheel_of(host, 5000).close(), random_losses=20):
        wheel = wheel_of(point.host, 5000)
        wheel.put(5000, 0, 0, 1)
        wheel.flush()
        wheel.close()
        assert wheel_of(point.host, 5000).slot(5000).count == 1
        assert len(read_file(point.host.fs, WHEEL)) == 5000 * 2 * 32


def test_a_wheel_that_is_too_long() -> None:
    """It is refused even where it holds nothing: another number of slots was set."""
    host = SimulatedHost()
    host.fs.make_directory("/store")
    write_file(host.fs, WHEEL, bytes(64_000))
    with pytest.raises(CorruptFileError):
        wheel_of(host)


def test_read_only() -> None:
    """A wheel that is only read makes no file."""
    host = SimulatedHost()
    wheel = TimerWheel(host, WHEEL, slot_count=50, is_writable=False)
    assert wheel.slot(0) == NO_SLOT or wheel.slot(0).count == 0
    assert not host.fs.exists(WHEEL)


def test_revise() -> None:
    """A recovery lets a slot end with the last unit found; one of another tick begins with it."""
    wheel = wheel_of(SimulatedHost())
    wheel.put(5000, 0, 52, 2)
    wheel.revise(5000, 104)
    assert wheel.slot(5000) == Slot(5000, 0, 104, 2)
    wheel.revise(105_000, 156)
    assert wheel.slot(105_000) == Slot(105_000, 156, 156, 2)


@given(
    st.dictionaries(st.integers(100, 199), st.integers(1, 50), max_size=40),
    st.integers(100_000, 199_999),
    st.integers(0, 5000),
    st.booleans(),
)
def test_pending(counts: dict[int, int], start_ms: int, above: int, is_flushed: bool) -> None:
    """What waits from a time on is counted as adding up the ticks does, flushed or not."""
    wheel = wheel_of(SimulatedHost())
    for tick, count in counts.items():
        wheel.put(tick * 1000, tick * 52, tick * 52 + count, count)
    if is_flushed:
        wheel.flush()
    later = {tick: count for tick, count in counts.items() if tick >= start_ms // 1000}
    assert wheel.count_from(start_ms) == sum(later.values())
    leading = [tick * 52 for tick, count in later.items() if tick * 52 + count > above]
    assert wheel.first_unit_above(start_ms, above) == min(leading, default=None)


@given(st.binary(max_size=60))
def test_any_unit(data: bytes) -> None:
    """Any bytes are a unit that is encoded to themselves again, or none."""
    unit = TimerUnit.decode(data)
    assert unit is None or unit.encode() == data[:52]
    assert is_blank(data) in (True, False)


def test_log_over_files() -> None:
    """Units go from file to file; a BLANK fills each, and every unit is found at its place."""
    host = SimulatedHost()
    log = TimerLog(host, "/store/timerlog", file_size_bytes=300)
    assert not host.fs.exists("/store/timerlog")
    places = [append(log, number) for number in range(12)]
    assert places == [number // 5 * 300 + number % 5 * 52 for number in range(12)]
    assert [log.unit_at(place) for place in places] == [unit_of(number) for number in range(12)]
    assert list(log.units()) == [(place, unit_of(n)) for n, place in enumerate(places)]
    assert [place for place, _ in log.units(301)] == places[5:]
    assert log.unit_at(260) is None
    assert log.unit_at(-1) is None
    assert log.unit_at(10_000) is None
    first = read_file(host.fs, "/store/timerlog/00000000000000000000")
    assert first[260:276] == (40).to_bytes(4, "big") + bytes(8) + (
        BLANK_MAGIC & 0xFFFFFFFF
    ).to_bytes(4, "big")
    log.flush()
    log.close()
    again = TimerLog(host, "/store/timerlog", file_size_bytes=300)
    assert again.max_timer_offset == log.max_timer_offset
    assert append(again, 12) == 600 + 2 * 52


def test_log_after_power_loss() -> None:
    """After a power loss the log holds at least what was flushed, and goes on behind it."""
    host = SimulatedHost()
    log = TimerLog(host, "/store/timerlog", file_size_bytes=300)
    for number in range(7):
        append(log, number)
    log.flush()
    assert log.flushed_where == log.max_timer_offset
    for number in range(7, 10):
        append(log, number)
    host.power_loss()
    again = TimerLog(host, "/store/timerlog", file_size_bytes=300)
    found = [unit for _, unit in again.units()]
    assert found[:7] == [unit_of(number) for number in range(7)]
    append(again, 99)
    assert list(again.units())[-1][1] == unit_of(99)


def test_log_that_cannot_be_made() -> None:
    """Where the disk refuses nothing is appended, and the error says where."""
    host = SimulatedHost()
    host.fs.make_directory("/store")
    write_file(host.fs, "/store/timerlog", b"not a directory")
    with pytest.raises((WriteFailedError, OSError), match="timerlog"):
        append(TimerLog(host, "/store/timerlog", file_size_bytes=300), 0)


def test_wrong_file_size() -> None:
    """A file of another size is refused, naming the file and the setting."""
    host = SimulatedHost()
    host.fs.make_directory("/store/timerlog")
    write_file(host.fs, "/store/timerlog/00000000000000000000", bytes(299) + b"x")
    write_file(host.fs, "/store/timerlog/00000000000000000300", bytes(298) + b"x")
    with pytest.raises(CorruptFileError, match="mappedFileSizeTimerLog"):
        TimerLog(host, "/store/timerlog", file_size_bytes=300)


def test_metrics() -> None:
    """Counts are kept by topic, on one line, and forgotten with their topic."""
    host = SimulatedHost()
    metrics = TimerMetrics(host, "/store/config")
    assert not metrics.load()
    metrics.add("t", 1)
    metrics.add("t", 1)
    metrics.add("gone", 1)
    metrics.add("rmq_sys_x", 1)
    assert metrics.data_version.counter == 4
    metrics.keep_only({"t"})
    metrics.persist()
    text = read_file(host.fs, "/store/config/timermetrics")
    assert text.startswith(b'{"dataVersion":{"counter":4,')
    assert b"\n" not in text
    again = TimerMetrics(host, "/store/config")
    assert again.load()
    assert again.by_topic == metrics.by_topic
    assert (again.count("t"), again.count("gone"), again.count("rmq_sys_x")) == (2, 0, 1)
