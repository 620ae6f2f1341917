"""What survives a power loss on the simulated disk, case by case and against an oracle."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.host import read_file, write_file
from logstore.testing import (
    CORNERS,
    DATA_WITHOUT_NAMES,
    DATA_WITHOUT_SIZES,
    KEEP_EVERYTHING,
    LOSE_UNSYNCED,
    NAMES_WITHOUT_DATA,
    SIZES_WITHOUT_DATA,
    Kept,
    PowerLoss,
    SimulatedHost,
    every_power_loss,
)

ALL_LOSSES = (*CORNERS, *map(PowerLoss.random, range(20)))


@pytest.fixture
def host() -> SimulatedHost:
    """A host with a durable /data that holds a durable file of 2000 bytes `a`."""
    host = SimulatedHost()
    host.fs.make_directory("/data")
    host.fs.sync_directory("/")
    file = host.fs.open("/data/log", create=True)
    file.write(0, b"a" * 2000)
    file.sync()
    host.fs.sync_directory("/data")
    return host


def after(host: SimulatedHost, loss: PowerLoss) -> SimulatedHost:
    """Return a fork of `host` that lost power."""
    fork = host.fork()
    fork.power_loss(loss)
    return fork


def log_after(host: SimulatedHost, loss: PowerLoss) -> bytes:
    """Return the content of /data/log after that loss."""
    return read_file(after(host, loss).fs, "/data/log")


def names(host: SimulatedHost) -> list[str]:
    """Return what is in /data."""
    return [entry.name for entry in host.fs.list_directory("/data")]


def test_a_fork_knows_a_renamed_file_by_both_names(host: SimulatedHost) -> None:
    """What is written to it there by its new name is under the old one if the renaming is lost."""
    host.fs.rename("/data/log", "/data/new")
    fork = host.fork()
    file = fork.fs.open("/data/new")
    file.write(0, b"b" * 2000)
    file.sync()
    assert log_after(fork, DATA_WITHOUT_NAMES) == b"b" * 2000
    assert log_after(host, DATA_WITHOUT_NAMES) == b"a" * 2000


def test_a_fork_of_a_removed_folder_brings_it_back_whole(host: SimulatedHost) -> None:
    """A folder that only a change of names still knows has its files in the fork, too."""
    host.fs.remove("/data/log")
    host.fs.remove_directory("/data")
    back = after(host, DATA_WITHOUT_NAMES)
    assert names(back) == ["log"]
    assert read_file(back.fs, "/data/log") == b"a" * 2000
    assert not host.fs.exists("/data")


@pytest.mark.parametrize("loss", ALL_LOSSES, ids=str)
def test_what_was_synced_stays(host: SimulatedHost, loss: PowerLoss) -> None:
    """No loss takes synced data, a synced size, a synced cut or a synced name."""
    file = host.fs.open("/data/log")
    file.write(1999, b"b" * 1000)
    file.truncate(2500)
    file.sync()
    assert host.fs.unsynced_paths() == []
    assert log_after(host, loss) == b"a" * 1999 + b"b" * 501


def test_what_was_not_synced_is_lost(host: SimulatedHost) -> None:
    """The cautious disk forgets writes, appends, cuts, new names, removals and renames."""
    file = host.fs.open("/data/log")
    file.write(100, b"b" * 100)
    file.truncate(1000)
    file.write(1000, b"c" * 5000)
    host.fs.rename("/data/log", "/data/moved")
    host.fs.make_directory("/data/new")
    host.fs.open("/data/new/file", create=True).sync()
    assert host.fs.unsynced_paths() == [
        "/data/log",
        "/data/moved",
        "/data/new",
        "/data/new/file",
    ]
    lost = after(host, LOSE_UNSYNCED)
    assert names(lost) == ["log"]
    assert read_file(lost.fs, "/data/log") == b"a" * 2000
    assert lost.fs.unsynced_paths() == []


def test_the_diligent_disk_keeps_everything(host: SimulatedHost) -> None:
    """KEEP_EVERYTHING leaves what the process saw."""
    file = host.fs.open("/data/log")
    file.truncate(1000)
    file.write(1000, b"c" * 5000)
    host.fs.rename("/data/log", "/data/moved")
    kept = after(host, KEEP_EVERYTHING)
    assert names(kept) == ["moved"]
    assert read_file(kept.fs, "/data/moved") == b"a" * 1000 + b"c" * 5000


def test_the_corners_part_data_sizes_and_names(host: SimulatedHost) -> None:
    """Each corner keeps exactly what its name says of an overwritten and extended file."""
    file = host.fs.open("/data/log")
    file.write(1500, b"b" * 1000)
    host.fs.open("/data/new", create=True).write(0, b"n" * 10)
    found = {
        loss: (log_after(host, loss), names(after(host, loss)))
        for loss in (
            NAMES_WITHOUT_DATA,
            SIZES_WITHOUT_DATA,
            DATA_WITHOUT_NAMES,
            DATA_WITHOUT_SIZES,
        )
    }
    assert found == {
        NAMES_WITHOUT_DATA: (b"a" * 2000, ["log", "new"]),
        SIZES_WITHOUT_DATA: (b"a" * 2000 + bytes(500), ["log", "new"]),
        DATA_WITHOUT_NAMES: (b"a" * 1500 + b"b" * 1000, ["log"]),
        DATA_WITHOUT_SIZES: (b"a" * 1500 + b"b" * 500, ["log", "new"]),
    }
    assert read_file(after(host, NAMES_WITHOUT_DATA).fs, "/data/new") == b""
    assert read_file(after(host, SIZES_WITHOUT_DATA).fs, "/data/new") == bytes(10)


def test_a_write_is_torn_where_the_test_says(host: SimulatedHost) -> None:
    """PowerLoss.torn keeps so many bytes of the last write and ends the file there."""
    file = host.fs.open("/data/log")
    file.write(2000, b"b" * 300)
    file.write(2300, b"c" * 300)
    assert log_after(host, PowerLoss.torn(0)) == b"a" * 2000 + b"b" * 300
    assert log_after(host, PowerLoss.torn(17)) == b"a" * 2000 + b"b" * 300 + b"c" * 17
    assert log_after(host, PowerLoss.torn(999)) == b"a" * 2000 + b"b" * 300 + b"c" * 300


def test_an_overwrite_is_torn_into_what_was_there(host: SimulatedHost) -> None:
    """Behind the tear of an overwrite the old bytes stand."""
    host.fs.open("/data/log").write(0, b"b" * 1000)
    assert log_after(host, PowerLoss.torn(600)) == b"b" * 600 + b"a" * 1400


def test_random_losses_tear_between_sectors(host: SimulatedHost) -> None:
    """Dice leave every mixture of old and new sectors, and nothing finer than a sector."""
    host.fs.open("/data/log").write(0, b"b" * 2000)
    found = {log_after(host, PowerLoss.random(seed)) for seed in range(300)}
    sectors = [(start, min(start + 512, 2000)) for start in range(0, 2000, 512)]
    mixtures = {
        b"".join(
            (b"b" if mask >> n & 1 else b"a") * (stop - start)
            for n, (start, stop) in enumerate(sectors)
        )
        for mask in range(16)
    }
    assert found == mixtures


def test_sectors_may_be_tiny() -> None:
    """With sectors of 4 bytes a write of 8 is torn in its middle."""
    host = SimulatedHost(sector_bytes=4)
    host.fs.open("/log", create=True).write(0, b"aaaaaaaa")
    host.fs.open("/log").sync()
    host.fs.sync_directory("/")
    host.fs.open("/log").write(1, b"bbbbbb")
    losses = map(PowerLoss.random, range(100))
    found = {read_file(after(host, loss).fs, "/log") for loss in losses}
    assert found == {b"aaaaaaaa", b"abbbaaaa", b"aaaabbba", b"abbbbbba"}


def test_an_unsynced_cut_may_be_undone_behind_new_bytes(host: SimulatedHost) -> None:
    """Cut, append, lose power: the bytes cut off may stand behind the bytes appended."""
    file = host.fs.open("/data/log")
    file.truncate(512)
    file.write(512, b"b" * 512)
    found = {log_after(host, PowerLoss.random(seed)) for seed in range(300)}
    assert b"a" * 512 + b"b" * 512 + b"a" * 976 in found
    assert b"a" * 512 + b"b" * 512 in found
    assert b"a" * 512 in found
    assert b"a" * 2000 in found


def test_a_cut_that_survives_covers_older_writes(host: SimulatedHost) -> None:
    """Write, cut away, lose power: a sector is old, written or cut, and no mixture of these."""
    file = host.fs.open("/data/log")
    file.write(100, b"b" * 100)
    file.truncate(0)
    versions = {
        b"a" * 512,
        b"a" * 100 + b"b" * 100 + b"a" * 312,
        bytes(512),
    }
    found = {log_after(host, PowerLoss.random(seed))[:512] for seed in range(300)}
    assert found == {*versions, b""}


def test_a_synced_cut_stays(host: SimulatedHost) -> None:
    """Cut, sync, append, lose power: nothing of what was cut comes back."""
    file = host.fs.open("/data/log")
    file.truncate(512)
    file.sync()
    file.write(512, b"b" * 1488)
    for loss in ALL_LOSSES:
        assert b"a" not in log_after(host, loss)[512:]


def test_a_synced_file_may_lose_its_name(host: SimulatedHost) -> None:
    """Syncing a file makes bytes durable; its name is durable when the directory is synced."""
    file = host.fs.open("/data/new", create=True)
    file.write(0, b"data")
    file.sync()
    assert names(after(host, LOSE_UNSYNCED)) == ["log"]
    host.fs.sync_directory("/data")
    assert read_file(after(host, LOSE_UNSYNCED).fs, "/data/new") == b"data"


def test_a_new_directory_needs_a_sync_of_its_parent(host: SimulatedHost) -> None:
    """A directory that is synced itself is lost with all in it while its parent is not."""
    host.fs.make_directory("/data/x/y")
    host.fs.open("/data/x/y/file", create=True).sync()
    host.fs.sync_directory("/data/x/y")
    host.fs.sync_directory("/data/x")
    assert not after(host, LOSE_UNSYNCED).fs.exists("/data/x")
    host.fs.sync_directory("/data")
    assert after(host, LOSE_UNSYNCED).fs.exists("/data/x/y/file")


@pytest.mark.parametrize("loss", ALL_LOSSES, ids=str)
def test_a_rename_is_atomic(host: SimulatedHost, loss: PowerLoss) -> None:
    """After a rename over a synced file there is the old file or the new one, never none."""
    file = host.fs.open("/data/log.tmp", create=True)
    file.write(0, b"new")
    file.sync()
    host.fs.rename("/data/log.tmp", "/data/log")
    lost = after(host, loss)
    content = read_file(lost.fs, "/data/log")
    assert content in (b"a" * 2000, b"new")
    assert not (lost.fs.exists("/data/log.tmp") and content == b"new")


def test_a_removed_file_comes_back(host: SimulatedHost) -> None:
    """A removal is durable when the directory is synced; until then the file may be back."""
    host.fs.remove("/data/log")
    assert log_after(host, LOSE_UNSYNCED) == b"a" * 2000
    assert names(after(host, KEEP_EVERYTHING)) == []
    host.fs.sync_directory("/data")
    assert names(after(host, LOSE_UNSYNCED)) == []


def test_unrelated_names_survive_in_any_combination(host: SimulatedHost) -> None:
    """Of two new files either, both or none may be there."""
    host.fs.open("/data/x", create=True)
    host.fs.open("/data/y", create=True)
    found = {tuple(names(after(host, PowerLoss.random(seed)))) for seed in range(100)}
    assert found == {("log",), ("log", "x"), ("log", "y"), ("log", "x", "y")}


def test_changes_of_one_name_keep_their_order(host: SimulatedHost) -> None:
    """A chain of renames is undone from its end: no file is ever without a name."""
    host.fs.rename("/data/log", "/data/log.1")
    host.fs.open("/data/log", create=True).sync()
    found = {tuple(names(after(host, PowerLoss.random(seed)))) for seed in range(100)}
    assert found == {("log",), ("log.1",), ("log", "log.1")}
    for seed in range(100):
        lost = after(host, PowerLoss.random(seed))
        sizes = {entry.size_bytes for entry in lost.fs.list_directory("/data")}
        assert 2000 in sizes


def test_a_file_renamed_twice_has_one_name(host: SimulatedHost) -> None:
    """Whichever of two renames survives, the file has its first, second or third name alone."""
    host.fs.rename("/data/log", "/data/log.1")
    host.fs.rename("/data/log.1", "/data/log.2")
    found = {tuple(names(after(host, PowerLoss.random(seed)))) for seed in range(100)}
    assert found == {("log",), ("log.1",), ("log.2",)}


def test_a_file_moved_into_a_new_directory_is_not_lost(host: SimulatedHost) -> None:
    """The file does not survive in a directory that does not: it is still where it was."""
    host.fs.make_directory("/data/x")
    host.fs.rename("/data/log", "/data/x/log")
    for seed in range(100):
        lost = after(host, PowerLoss.random(seed))
        assert lost.fs.exists("/data/log") != lost.fs.exists("/data/x/log")


def test_what_a_durable_rename_builds_upon_is_durable(host: SimulatedHost) -> None:
    """A name that was removed, used again and moved away durably does not come back."""
    host.fs.make_directory("/data/x")
    host.fs.sync_directory("/data")
    host.fs.remove("/data/log")
    host.fs.open("/data/log", create=True)
    host.fs.rename("/data/log", "/data/x/log")
    host.fs.sync_directory("/data/x")
    for loss in ALL_LOSSES:
        lost = after(host, loss)
        assert names(lost) == ["x"]
        assert read_file(lost.fs, "/data/x/log") == b""


def test_a_directory_sync_takes_along_what_it_builds_upon(host: SimulatedHost) -> None:
    """A rename out of another directory is durable in both once one of them is synced."""
    host.fs.make_directory("/data/x")
    host.fs.sync_directory("/data")
    host.fs.rename("/data/log", "/data/x/log")
    host.fs.sync_directory("/data/x")
    lost = after(host, LOSE_UNSYNCED)
    assert names(lost) == ["x"]
    assert read_file(lost.fs, "/data/x/log") == b"a" * 2000


def test_write_file_shows_old_or_new(host: SimulatedHost) -> None:
    """At every loss after every operation a file replaced by write_file is old or new, whole."""
    old, new = b"old" * 400, b"new" * 400
    write_file(host.fs, "/data/checkpoint", old)
    seen: set[bytes] = set()
    for point in every_power_loss(
        lambda host: write_file(host.fs, "/data/checkpoint", new),
        make_host=host.fork,
        losses=ALL_LOSSES,
    ):
        content = read_file(point.host.fs, "/data/checkpoint")
        assert content == new or (content == old and not point.is_last), point
        seen.add(content)
    assert seen == {old, new}


def test_the_death_of_the_process_loses_nothing(host: SimulatedHost) -> None:
    """Killing the process leaves all writes, frees the locks and kills the handles."""
    file = host.fs.open("/data/log")
    file.write(0, b"b")
    host.fs.lock("/data/.lock")
    host.fs.process_death()
    assert read_file(host.fs, "/data/log")[:2] == b"ba"
    host.fs.lock("/data/.lock").release()
    with pytest.raises(OSError, match="Errno 5"):
        file.read(0, 1)
    assert "/data/log" in host.fs.unsynced_paths()


def test_handles_and_locks_do_not_survive(host: SimulatedHost) -> None:
    """After the power is back old handles raise and old locks are to be had."""
    file = host.fs.open("/data/log")
    lock = host.fs.lock("/data/log")
    host.power_loss()
    for use in (file.size, file.sync, lambda: file.write(0, b"x"), lambda: file.read(0, 1)):
        with pytest.raises(OSError, match="Errno 5"):
            use()
    file.close()
    again = host.fs.lock("/data/log")
    lock.release()
    with pytest.raises(BlockingIOError):
        host.fs.lock("/data/log")
    again.release()


def test_a_fork_goes_its_own_way(host: SimulatedHost) -> None:
    """Time, chance, files, faults and the recording of a fork are its own."""
    fork = host.fork()
    same = [fork.fork().rng.random(), fork.rng.random(), host.rng.random()]
    assert len(set(same)) == 1
    fork.clock.advance(5)
    fork.fs.open("/data/log").write(0, b"fork")
    fork.fs.remove("/data/log")
    fork.fs.faults.is_read_only = True
    assert read_file(host.fs, "/data/log") == b"a" * 2000
    assert fork.clock.wall_ms() - host.clock.wall_ms() == 5
    assert len(fork.fs.journal) > len(host.fs.journal)
    host.fs.open("/data/log").write(0, b"host")


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 3000), st.integers(1, 1500)),
        st.tuples(st.just("truncate"), st.integers(0, 3000), st.just(0)),
        st.tuples(st.just("sync"), st.just(0), st.just(0)),
    ),
    max_size=12,
)


@given(STEPS, st.integers(0, 10_000), st.sampled_from(Kept), st.sampled_from(Kept))
def test_every_sector_is_one_of_its_versions(
    steps: list[tuple[str, int, int]], seed: int, data: Kept, sizes: Kept
) -> None:
    """After any loss each sector is as it was at some moment since the last sync, or cut off."""
    host = SimulatedHost()
    file = host.fs.open("/log", create=True)
    host.fs.sync_directory("/")
    live = b""
    versions = [live]
    for number, (kind, position, size_bytes) in enumerate(steps):
        if kind == "sync":
            file.sync()
            versions = [live]
            continue
        if kind == "write":
            piece = bytes([number + 1]) * size_bytes
            file.write(position, piece)
            live = live.ljust(position, b"\0")
            live = live[:position] + piece + live[position + size_bytes :]
        else:
            file.truncate(position)
            live = live[:position].ljust(position, b"\0")
        versions.append(live)
    assert file.read(0, 10_000) == live
    host.power_loss(PowerLoss(data, sizes, Kept.NOTHING, seed))
    found = read_file(host.fs, "/log")
    lengths = {len(version) for version in versions}
    assert min(lengths) <= len(found) <= max(lengths)
    assert sizes is not Kept.NOTHING or len(found) == len(versions[0])
    assert sizes is not Kept.EVERYTHING or len(found) == len(live)
    for start in range(0, len(found), 512):
        sector = found[start : start + 512]
        legal = {v[start : start + len(sector)].ljust(len(sector), b"\0") for v in versions}
        assert sector in legal
