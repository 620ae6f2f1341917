"""The extension of a consume queue: addresses, the end of a file, recovery, cuts."""

from __future__ import annotations

import pytest

from logstore.host import read_file
from logstore.segments.rocketmq.queues.consume_queue import ConsumeQueue
from logstore.segments.rocketmq.queues.consume_queue_ext import (
    ConsumeQueueExt,
    ConsumeQueueExtUnit,
    is_ext_address,
)
from logstore.segments.rocketmq.queues.consume_queue_unit import UNIT
from logstore.segments.rocketmq.reading.message_filter import TagFilter
from logstore.testing import LOSE_UNSYNCED, SimulatedHost
from tests.segments.rocketmq.drafts import draft
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases
from tests.segments.rocketmq.small_store import bodies, small_store

DIRECTORY = "/store/consumequeue_ext/TopicTest/0"
#: five units with a bit map of 14 bytes, and 30 bytes
SIZE = 200
FIRST_ADDRESS = -(2**63)


def opened(host: SimulatedHost) -> ConsumeQueueExt:
    """Open and recover the extension."""
    ext = ConsumeQueueExt(host, DIRECTORY, file_size_bytes=SIZE, is_clean=False)
    ext.recover()
    return ext


def unit(number: int) -> ConsumeQueueExtUnit:
    """Return a unit of 34 bytes that bears its number."""
    return ConsumeQueueExtUnit(number, 1000 + number, bytes([number + 1]) * 14)


def filled(count: int) -> tuple[SimulatedHost, ConsumeQueueExt, list[int]]:
    """Return an extension of so many units, all of them durable, and their addresses."""
    host = SimulatedHost()
    ext = opened(host)
    addresses = [ext.put(unit(number)) for number in range(count)]
    ext.flush()
    return host, ext, [address for address in addresses if address is not None]


def test_an_address_is_no_hash_code() -> None:
    """Hash codes of tags have 32 bits; addresses are below all of them."""
    assert is_ext_address(FIRST_ADDRESS)
    assert is_ext_address(-(2**31) - 1)
    assert not is_ext_address(-(2**31))
    assert not is_ext_address(0)


def test_a_unit_is_found_by_its_address() -> None:
    """With its bit map, or without one."""
    _, ext, addresses = filled(12)
    plain = ext.put(ConsumeQueueExtUnit(-5, 77))

    assert [address - FIRST_ADDRESS for address in addresses[:6]] == [0, 34, 68, 102, 136, 200]
    assert [ext.get(address) for address in addresses] == [unit(number) for number in range(12)]
    assert plain is not None
    assert ext.get(plain) == ConsumeQueueExtUnit(-5, 77)
    assert ext.get(5) is None
    assert ext.get(FIRST_ADDRESS + 100_000) is None


def test_the_end_of_a_full_file_is_marked() -> None:
    """By a size of -1, where the next unit and four bytes do not fit."""
    host, _, _ = filled(6)

    first = read_file(host.fs, f"{DIRECTORY}/{0:020d}")

    assert first[170:] == b"\xff\xff" + bytes(28)
    assert first[:34] == unit(0).encode()


def test_a_unit_that_is_too_large_is_not_stored() -> None:
    """Its message goes without."""
    ext = opened(SimulatedHost())

    assert ext.put(ConsumeQueueExtUnit(1, 1, bytes(32767))) is None


def test_an_extension_comes_back_after_a_stop() -> None:
    """All of its files are walked, and it goes on at the end."""
    for count in (1, 5, 6, 17):
        host, ext, addresses = filled(count)
        ext.close()

        again = opened(host)

        assert [again.get(address) for address in addresses] == [unit(n) for n in range(count)]
        more = again.put(unit(count))
        assert more is not None
        assert more > addresses[-1]
        assert again.get(more) == unit(count)


def test_what_is_behind_an_address_goes() -> None:
    """And does not come back behind what is put after it."""
    for last in (12, 5, 4, 0):
        host, ext, addresses = filled(13)
        ext.truncate_above(addresses[last])
        assert ext.get(addresses[last]) == unit(last)
        assert ext.put(unit(50)) is not None
        ext.flush()
        host.power_loss(LOSE_UNSYNCED)
        again = opened(host)
        assert again.get(addresses[last]) == unit(last)
        assert all(again.get(address) in (None, unit(50)) for address in addresses[last + 1 :])


def test_files_before_an_address_go() -> None:
    """Whole files, as the messages of their units have."""
    host, ext, addresses = filled(13)

    ext.truncate_below(addresses[10])

    assert [entry.name for entry in host.fs.list_directory(DIRECTORY)] == [f"{400:020d}"]
    assert ext.get(addresses[3]) is None
    assert ext.get(addresses[10]) == unit(10)


def test_a_queue_cuts_its_extension() -> None:
    """What no unit leads to any more is let go of; a unit without an address changes nothing."""
    host = SimulatedHost()
    ext = ConsumeQueueExt(host, DIRECTORY, file_size_bytes=SIZE)
    queue = ConsumeQueue(host, "/store/consumequeue/T/0", "T", 0, file_size_bytes=200, ext=ext)
    addresses: list[int] = []
    for number in range(25):
        address = ext.put(unit(number))
        assert address is not None
        addresses.append(address)
        queue.put(number * 100, 100, address if number % 5 else 7, number)
    queue.flush()

    queue.truncate_dirty(1600)

    assert queue.ext_unit(addresses[14]) == unit(14)
    assert ext.get(addresses[15]) is None
    queue.correct_min(1200)
    assert queue.ext_unit(addresses[12]) == unit(12)
    assert ext.get(addresses[0]) is None


def test_a_flush_of_a_queue_is_one_of_its_extension() -> None:
    """Before the units that lead there; in two steps as well, as the store does it."""
    host = SimulatedHost()
    ext = ConsumeQueueExt(host, DIRECTORY, file_size_bytes=SIZE)
    queue = ConsumeQueue(host, "/store/consumequeue/T/0", "T", 0, file_size_bytes=200, ext=ext)
    address = ext.put(unit(1))
    assert address is not None
    queue.put(0, 100, address, 0)
    queue.write()
    task = queue.begin_flush()
    task.run()
    queue.end_flush(task)

    host.power_loss(LOSE_UNSYNCED)

    assert opened(host).get(address) == unit(1)


@pytest.mark.parametrize("case", golden_cases("filters"), ids=lambda case: case.id)
def test_the_extension_of_a_real_broker_is_read(case: GoldenCase) -> None:
    """Every address of a queue leads to a unit, and the same units give equal files."""
    (store,) = case.stores.values()
    host = SimulatedHost()
    count = 0
    for directory in sorted((store / "consumequeue_ext").glob("*/*")):
        queue_files = sorted(
            (store / "consumequeue" / directory.relative_to(directory.parents[1])).iterdir()
        )
        files = sorted(directory.iterdir())
        for file in files:
            copy = host.fs
            copy.make_directory(str(directory))
            handle = copy.open(str(file), create=True)
            handle.write(0, file.read_bytes())
        size_bytes = files[0].stat().st_size
        theirs = ConsumeQueueExt(host, str(directory), file_size_bytes=size_bytes)
        theirs.recover()
        ours = ConsumeQueueExt(host, f"/ours{directory}", file_size_bytes=size_bytes)
        stored = b"".join(file.read_bytes() for file in queue_files)
        for _, size, tags_code in UNIT.iter_unpack(stored):
            if size and is_ext_address(tags_code):
                found = theirs.get(tags_code)
                assert found is not None
                assert ours.put(found) == tags_code
                count += 1
        ours.close()
        assert [read_file(host.fs, f"/ours{file}") for file in files] == [
            file.read_bytes() for file in files
        ]
    assert count > 10


@pytest.mark.parametrize("is_ext_there", [True, False])
def test_a_store_that_is_only_read_writes_no_extension(is_ext_there: bool) -> None:
    """Messages that are in no queue yet are found all the same, by their tags, too."""
    host = SimulatedHost()
    settings = {"enableConsumeQueueExt": "true", "mappedFileSizeConsumeQueueExt": "1000"}
    store = small_store(host, settings=settings)
    for number in range(5):
        assert store.put_message(draft(body=b"%d" % number, properties={"TAGS": "a"})).is_ok
        if number == 2 and is_ext_there:
            store.tick()
    store.abandon()
    folder = f"{store.directory}/consumequeue_ext/TopicTest/0"
    assert host.fs.exists(folder) is is_ext_there
    before = list(host.fs.list_directory(folder)) if is_ext_there else []
    found = small_store(host, is_writable=False, settings=settings)
    assert bodies(found) == [b"0", b"1", b"2", b"3", b"4"]
    result = found.get_message("g", "TopicTest", 0, 0, 32, message_filter=TagFilter([97]))
    assert result is not None
    assert result.count == 5
    found.close()
    assert host.fs.exists(folder) is is_ext_there
    assert (list(host.fs.list_directory(folder)) if is_ext_there else []) == before
