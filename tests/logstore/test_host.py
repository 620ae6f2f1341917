"""What every Host promises, asked of the real one and of the simulated one."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import attrs
import pytest

from logstore.host import FileSystem, Host, read_file, write_file
from logstore.os_host import system_host
from logstore.testing import SimulatedHost


@attrs.frozen
class World:
    """A host and a directory in it that is free to use."""

    host: Host
    root: str

    @property
    def fs(self) -> FileSystem:
        """The host's files."""
        return self.host.fs

    def make(self, name: str, data: bytes = b"") -> str:
        """Create a file with that content; return its path."""
        path = f"{self.root}/{name}"
        file = self.fs.open(path, create=True)
        file.write(0, data)
        file.close()
        return path

    def names(self) -> list[str]:
        """Return what is in the directory."""
        return [entry.name for entry in self.fs.list_directory(self.root)]


@pytest.fixture(params=["system", "simulated"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """A fresh world of either kind."""
    if request.param == "system":
        return World(system_host(seed=1), str(tmp_path))
    host = SimulatedHost(seed=1)
    host.fs.make_directory("/data")
    return World(host, "/data")


def test_holes_are_passed_over(world: World) -> None:
    """The next data is at or before the next byte that was written; behind all there is none."""
    path = world.make("a", b"start")
    file = world.fs.open(path)
    file.truncate(1 << 24)
    file.write(1 << 22, b"middle")
    assert file.next_data(0) == 0
    found = file.next_data(1 << 20)
    assert found is not None
    assert 1 << 20 <= found <= 1 << 22
    assert file.next_data((1 << 22) + 3) == (1 << 22) + 3
    assert file.next_data(1 << 23) is None
    assert file.next_data(1 << 24) is None
    assert file.read(0, 5) == b"start"


def test_a_file_system_that_knows_no_holes_has_data_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then all is read, up to the end of the file."""

    def refuse(*_: object) -> int:
        raise OSError(errno.EINVAL, "Invalid argument")

    file = system_host().fs.open(str(tmp_path / "a"), create=True)
    file.truncate(100)
    assert file.next_data(0) is None
    monkeypatch.setattr(os, "lseek", refuse)
    assert (file.next_data(0), file.next_data(99), file.next_data(100)) == (0, 99, None)


def test_what_is_written_is_read(world: World) -> None:
    """A read returns the bytes that were written at that position, through any handle."""
    path = world.make("a", b"hello world")
    file = world.fs.open(path)
    file.write(6, b"there")
    assert world.fs.open(path, writable=False).read(0, 100) == b"hello there"
    assert file.read(6, 3) == b"the"
    assert file.size() == 11
    assert file.path == path


def test_any_buffer_can_be_written(world: World) -> None:
    """bytes, bytearray and memoryview are written alike, whatever their item size."""
    file = world.fs.open(world.make("a"))
    file.write(0, bytearray(b"abcd"))
    file.write(4, memoryview(b"efghijkl").cast("I"))
    file.write(12, b"")
    assert file.read(0, 100) == b"abcdefghijkl"


def test_a_read_past_the_end_is_short(world: World) -> None:
    """Where the file ends the read ends; beyond the end there is nothing, and no error."""
    file = world.fs.open(world.make("a", b"0123456789"))
    assert file.read(8, 100) == b"89"
    assert file.read(10, 1) == b""
    assert file.read(1000, 1) == b""
    assert file.read(3, 0) == b""


def test_read_into_fills_what_there_is(world: World) -> None:
    """read_into says how many bytes it had and leaves the rest of the target alone."""
    file = world.fs.open(world.make("a", b"0123456789"))
    target = bytearray(b"........")
    assert file.read_into(7, memoryview(target)) == 3
    assert target == b"789....."
    assert file.read_into(0, memoryview(target)[2:6]) == 4
    assert target == b"780123.."
    assert file.read_into(10, memoryview(target)) == 0


def test_a_gap_reads_as_zeros(world: World) -> None:
    """Writing past the end leaves zeros in between; extending leaves zeros behind."""
    file = world.fs.open(world.make("a", b"x"))
    file.write(200_000, b"y")
    assert file.size() == 200_001
    assert file.read(0, 200_001) == b"x" + bytes(199_999) + b"y"
    file.truncate(300_000)
    assert file.read(199_999, 10) == b"\0y" + bytes(8)
    assert file.size() == 300_000


def test_an_empty_write_past_the_end_changes_nothing(world: World) -> None:
    """A file grows by bytes written, not by positions named."""
    file = world.fs.open(world.make("a", b"x"))
    file.write(100, b"")
    assert file.size() == 1


def test_what_was_cut_does_not_come_back(world: World) -> None:
    """After cutting and extending, the cut part reads as zeros."""
    file = world.fs.open(world.make("a", b"0123456789"))
    file.truncate(4)
    assert file.read(0, 100) == b"0123"
    file.truncate(8)
    assert file.read(0, 100) == b"0123\0\0\0\0"


def test_negative_positions_are_refused(world: World) -> None:
    """There is nothing before the start of a file."""
    file = world.fs.open(world.make("a", b"0123"))
    with pytest.raises(OSError, match="Errno 22"):
        file.read(-1, 1)
    with pytest.raises(OSError, match="Errno 22"):
        file.write(-1, b"x")
    with pytest.raises(OSError, match="Errno 22"):
        file.truncate(-1)
    assert file.read(0, 100) == b"0123"


def test_a_missing_file_is_created_only_on_demand(world: World) -> None:
    """Without `create` a missing file is an error; with it, an existing one stays as it is."""
    path = f"{world.root}/a"
    with pytest.raises(FileNotFoundError):
        world.fs.open(path)
    assert not world.fs.exists(path)
    world.fs.open(path, create=True).write(0, b"data")
    assert world.fs.open(path, create=True).size() == 4


def test_a_read_only_handle_does_not_write(world: World) -> None:
    """Writing and cutting through it raise, change nothing, and a failed write names the file."""
    path = world.make("a", b"0123")
    file = world.fs.open(path, writable=False)
    with pytest.raises(OSError, match="Errno 9") as told:
        file.write(0, b"x")
    assert told.value.filename == path
    with pytest.raises(OSError, match=r"Errno (9|22)"):
        file.truncate(0)
    assert file.read(0, 100) == b"0123"


def test_a_closed_handle_is_dead(world: World) -> None:
    """Closing twice is fine; using a closed handle raises."""
    file = world.fs.open(world.make("a", b"0123"))
    file.close()
    file.close()
    for use in (file.size, file.sync, lambda: file.read(0, 1), lambda: file.write(0, b"x")):
        with pytest.raises((OSError, ValueError)):
            use()


def test_syncing_is_invisible(world: World) -> None:
    """Syncs of files and directories change nothing that a reader sees."""
    file = world.fs.open(world.make("a", b"0123"))
    file.sync()
    world.fs.sync_directory(world.root)
    assert file.read(0, 100) == b"0123"
    assert world.names() == ["a"]


def test_only_directories_are_synced_as_directories(world: World) -> None:
    """sync_directory of a file or of nothing is an error."""
    path = world.make("a")
    with pytest.raises(NotADirectoryError):
        world.fs.sync_directory(path)
    with pytest.raises(FileNotFoundError):
        world.fs.sync_directory(f"{world.root}/missing")


def test_listings_are_sorted(world: World) -> None:
    """Names come sorted, with their kind and their size."""
    for name in ("b", "00010.log", "a", "00009.log"):
        world.make(name, b"x" * len(name))
    world.fs.make_directory(f"{world.root}/aa")
    entries = world.fs.list_directory(world.root)
    assert [(e.name, e.is_directory, e.size_bytes) for e in entries] == [
        ("00009.log", False, 9),
        ("00010.log", False, 9),
        ("a", False, 1),
        ("aa", True, 0),
        ("b", False, 1),
    ]


def test_only_directories_are_listed(world: World) -> None:
    """Listing a file or nothing is an error."""
    path = world.make("a")
    with pytest.raises(NotADirectoryError):
        world.fs.list_directory(path)
    with pytest.raises(FileNotFoundError):
        world.fs.list_directory(f"{world.root}/missing")


def test_directories_are_made_with_their_parents(world: World) -> None:
    """make_directory makes what is missing and is content with what is there."""
    path = f"{world.root}/x/y/z"
    world.fs.make_directory(path)
    world.fs.make_directory(path)
    assert world.fs.is_directory(path)
    assert world.fs.is_directory(f"{world.root}/x")
    assert world.fs.exists(path)


def test_a_file_is_not_a_directory(world: World) -> None:
    """Where a file stands no directory can be made, and nothing stands below it."""
    path = world.make("a")
    with pytest.raises(FileExistsError):
        world.fs.make_directory(path)
    with pytest.raises(NotADirectoryError):
        world.fs.make_directory(f"{path}/b")
    with pytest.raises(NotADirectoryError):
        world.fs.make_directory(f"{path}/b/c")
    with pytest.raises(NotADirectoryError):
        world.fs.open(f"{path}/b", create=True)
    assert not world.fs.is_directory(path)
    assert not world.fs.exists(f"{path}/b")
    assert not world.fs.is_directory(f"{path}/b")


def test_files_are_not_created_in_missing_directories(world: World) -> None:
    """`create` makes a file, not its parents."""
    with pytest.raises(FileNotFoundError):
        world.fs.open(f"{world.root}/missing/a", create=True)


def test_a_directory_is_not_opened_for_writing(world: World) -> None:
    """Opening a directory as a file is EISDIR."""
    with pytest.raises(IsADirectoryError):
        world.fs.open(world.root)


def test_a_rename_replaces(world: World) -> None:
    """The target is the source's file afterwards; the source's name is gone."""
    source, target = world.make("a", b"new"), world.make("b", b"old")
    world.fs.rename(source, target)
    assert world.names() == ["b"]
    assert read_file(world.fs, target) == b"new"


def test_a_rename_to_itself_does_nothing(world: World) -> None:
    """A file renamed to its own name stays."""
    path = world.make("a", b"data")
    world.fs.rename(path, path)
    assert read_file(world.fs, path) == b"data"


def test_a_directory_moves_with_its_files(world: World) -> None:
    """Renaming a directory moves all that is in it; an empty directory may be replaced."""
    world.fs.make_directory(f"{world.root}/topic-0")
    world.make("topic-0/0.log", b"data")
    world.fs.make_directory(f"{world.root}/topic-0.delete")
    world.fs.rename(f"{world.root}/topic-0", f"{world.root}/topic-0.delete")
    assert world.names() == ["topic-0.delete"]
    assert read_file(world.fs, f"{world.root}/topic-0.delete/0.log") == b"data"


def test_impossible_renames_are_refused(world: World) -> None:
    """Missing sources, mixed kinds, full targets and moves into oneself raise what POSIX says."""
    fs, root = world.fs, world.root
    path = world.make("file", b"data")
    fs.make_directory(f"{root}/full/inner")
    fs.make_directory(f"{root}/empty")
    with pytest.raises(FileNotFoundError):
        fs.rename(f"{root}/missing", path)
    with pytest.raises(FileNotFoundError):
        fs.rename(path, f"{root}/missing/file")
    with pytest.raises(IsADirectoryError):
        fs.rename(path, f"{root}/empty")
    with pytest.raises(NotADirectoryError):
        fs.rename(f"{root}/empty", path)
    with pytest.raises(OSError, match="Errno 39"):
        fs.rename(f"{root}/empty", f"{root}/full")
    with pytest.raises(OSError, match="Errno 22"):
        fs.rename(f"{root}/full", f"{root}/full/inner/deep")
    assert world.names() == ["empty", "file", "full"]


def test_a_handle_follows_its_file(world: World) -> None:
    """An open file can be read and written after it was renamed, and after it was removed."""
    path = world.make("a", b"0123")
    file = world.fs.open(path)
    world.fs.rename(path, f"{world.root}/b")
    file.write(4, b"4567")
    assert read_file(world.fs, f"{world.root}/b") == b"01234567"
    world.fs.remove(f"{world.root}/b")
    file.write(0, b"x")
    assert file.read(0, 4) == b"x123"
    assert world.names() == []


def test_a_new_file_of_an_old_name_is_another_file(world: World) -> None:
    """Removing and creating again starts empty; the old handle keeps the old file."""
    path = world.make("a", b"old")
    old = world.fs.open(path)
    world.fs.remove(path)
    assert world.fs.open(path, create=True).size() == 0
    assert old.read(0, 100) == b"old"


def test_remove_is_for_files(world: World) -> None:
    """Removing nothing is ENOENT, removing a directory as a file is EISDIR."""
    with pytest.raises(FileNotFoundError):
        world.fs.remove(f"{world.root}/missing")
    world.fs.make_directory(f"{world.root}/x")
    with pytest.raises(IsADirectoryError):
        world.fs.remove(f"{world.root}/x")
    world.fs.remove(world.make("a"))
    assert world.names() == ["x"]


def test_remove_directory_takes_everything_along(world: World) -> None:
    """A tree is removed whole, its neighbours stay, and a missing one is fine."""
    for name in ("x", "x/y", "xx"):
        world.fs.make_directory(f"{world.root}/{name}")
        world.make(f"{name}/a", b"data")
    world.fs.remove_directory(f"{world.root}/x")
    world.fs.remove_directory(f"{world.root}/x")
    assert world.names() == ["xx"]
    assert world.fs.exists(f"{world.root}/xx/a")


def test_write_file_replaces_and_leaves_no_trace(world: World) -> None:
    """Whatever was there before, also a longer left-over .tmp, only the new content is there."""
    world.make("checkpoint.tmp", b"left over, and quite long")
    path = f"{world.root}/checkpoint"
    for content, sync in ((b"0\n1\n", True), (b"0\n", False), (b"", True)):
        write_file(world.fs, path, content, sync=sync)
        assert read_file(world.fs, path) == content
        assert world.names() == ["checkpoint"]


def test_modified_ms_is_the_wall_clock(world: World) -> None:
    """A file's time is that of its last write, on the host's wall clock."""
    before_ms = world.host.clock.wall_ms()
    path = world.make("a", b"x")
    assert before_ms - 2_000 <= world.fs.modified_ms(path) <= world.host.clock.wall_ms() + 2_000
    with pytest.raises(FileNotFoundError):
        world.fs.modified_ms(f"{world.root}/missing")


def test_the_time_of_a_file_can_be_set(world: World) -> None:
    """What replaces an older file may be as old; the next write makes it young again."""
    path = world.make("a", b"x")
    world.fs.set_modified_ms(path, 1_600_000_000_123)
    assert world.fs.modified_ms(path) == 1_600_000_000_123
    world.fs.open(path).write(0, b"y")
    assert world.fs.modified_ms(path) > 1_600_000_000_123
    with pytest.raises(FileNotFoundError):
        world.fs.set_modified_ms(f"{world.root}/missing", 0)


def test_a_volume_has_a_size(world: World) -> None:
    """Files take of it what they hold, whichever path on it is asked; no path, no volume."""
    path = world.make("a", bytes(100_000))
    space = world.fs.volume_space(world.root)
    assert 100_000 <= space.usable_bytes + 100_000 <= space.total_bytes
    assert world.fs.volume_space(path).total_bytes == space.total_bytes
    with pytest.raises(FileNotFoundError):
        world.fs.volume_space(f"{world.root}/no such")


def test_a_lock_is_exclusive(world: World) -> None:
    """While a lock is held a second one is BlockingIOError; once released it is to be had."""
    path = f"{world.root}/.lock"
    lock = world.fs.lock(path)
    assert world.fs.exists(path)
    for _ in range(2):
        with pytest.raises(BlockingIOError):
            world.fs.lock(path)
    world.fs.lock(f"{world.root}/other").release()
    lock.release()
    again = world.fs.lock(path)
    lock.release()
    with pytest.raises(BlockingIOError):
        world.fs.lock(path)
    again.release()


def test_chance_repeats(world: World) -> None:
    """The same seed throws the same dice."""
    same = system_host(seed=1).rng
    assert [world.host.rng.random() for _ in range(3)] == [same.random() for _ in range(3)]


def test_the_monotonic_clock_never_goes_back(world: World) -> None:
    """Two looks in a row are in order."""
    first = world.host.clock.monotonic_ms()
    assert world.host.clock.monotonic_ms() >= first


def test_a_system_file_has_a_descriptor_and_a_simulated_one_has_none(world: World) -> None:
    """Zero-copy sends need a descriptor of the kernel."""
    file = world.fs.open(world.make("a", b"0123"))
    number = file.fileno()
    if isinstance(world.host, SimulatedHost):
        assert number is None
    else:
        assert number is not None
        assert os.pread(number, 2, 1) == b"12"
