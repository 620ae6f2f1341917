"""Files of one size: the rules of loading them, and the file that is made ahead."""

from __future__ import annotations

import pytest

from logstore.errors import CorruptFileError, MissingSegmentError
from logstore.host import FileSystem, read_file
from logstore.segments.rocketmq.files.mapped_file_directory import MappedFileDirectory, file_name
from logstore.segments.rocketmq.files.mapped_file_queue import MappedFileQueue
from logstore.segments.rocketmq.log.commit_log_file import CommitLogFile
from logstore.segments.rocketmq.messages.message_draft import MessageEntry
from logstore.testing import LOSE_UNSYNCED, SimulatedHost
from tests.segments.rocketmq.drafts import draft

LOG = "/store/commitlog"
SIZE = 1000


def loaded(
    host: SimulatedHost, *, is_clean: bool = True, is_writable: bool = True
) -> MappedFileDirectory[CommitLogFile]:
    """Load the directory."""

    def make_file(
        fs: FileSystem, path: str, base_offset: int, size_bytes: int, offset_bytes: int
    ) -> CommitLogFile:
        return CommitLogFile(fs, path, base_offset, size_bytes, offset_bytes)

    return MappedFileDirectory(
        host.fs,
        LOG,
        make_file,
        SIZE,
        size_setting="mappedFileSizeCommitLog",
        is_clean=is_clean,
        is_writable=is_writable,
        makes_spare=True,
    )


def put(host: SimulatedHost, name: str, size_bytes: int = SIZE, data: bytes = b"") -> str:
    """Put a file into the directory."""
    host.fs.make_directory(LOG)
    path = f"{LOG}/{name}"
    file = host.fs.open(path, create=True)
    file.write(0, data)
    file.truncate(size_bytes)
    file.close()
    return path


def names(host: SimulatedHost) -> list[str]:
    """Return what stands in the directory."""
    return [entry.name for entry in host.fs.list_directory(LOG)]


def test_a_name_is_the_first_byte_in_twenty_digits() -> None:
    """``UtilAll.offset2FileName``."""
    assert file_name(1073741824) == "00000000001073741824"


def test_a_directory_that_is_not_there_has_no_files() -> None:
    """And looking at it does not make it."""
    host = SimulatedHost()

    assert loaded(host).base_offsets() == []
    assert not host.fs.exists(LOG)


def test_directories_are_passed_over() -> None:
    """As in Java."""
    host = SimulatedHost()
    put(host, file_name(0), data=b"x")
    host.fs.make_directory(f"{LOG}/notes")

    assert loaded(host).base_offsets() == [0]


def test_a_last_file_of_no_length_is_removed() -> None:
    """As in Java; a log that is only read passes it over."""
    host = SimulatedHost()
    put(host, file_name(0), data=b"x")
    put(host, file_name(SIZE), 0)

    assert loaded(host, is_writable=False).base_offsets() == [0]
    assert names(host) == [file_name(0), file_name(SIZE)]
    assert loaded(host).base_offsets() == [0]
    assert names(host) == [file_name(0)]


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize(
    ("sizes", "wrong"),
    [((SIZE - 1,), 0), ((SIZE, SIZE + 1), 1), ((0, SIZE), 0), ((SIZE, 20, SIZE), 1)],
)
def test_a_file_of_another_size_is_named(
    sizes: tuple[int, ...], wrong: int, *, is_clean: bool
) -> None:
    """With both sizes and the setting; nothing is changed."""
    host = SimulatedHost()
    for number, size_bytes in enumerate(sizes):
        put(host, file_name(number * SIZE), size_bytes, b"x" if size_bytes else b"")
    before = [read_file(host.fs, f"{LOG}/{name}") for name in names(host)]

    with pytest.raises(CorruptFileError) as caught:
        loaded(host, is_clean=is_clean)

    assert f"{LOG}/{file_name(wrong * SIZE)}: is {sizes[wrong]} bytes long" in str(caught.value)
    assert "not 1000 as mappedFileSizeCommitLog says" in str(caught.value)
    assert [read_file(host.fs, f"{LOG}/{name}") for name in names(host)] == before


@pytest.mark.parametrize("name", ["notes.txt", "0000000000000000000a", "00000000000000000000.bak"])
def test_a_strange_name_is_an_error(name: str) -> None:
    """Java would stop over it with an exception that names nothing."""
    host = SimulatedHost()
    put(host, file_name(0), data=b"x")
    path = put(host, name, data=b"x")

    with pytest.raises(CorruptFileError, match="its name is no number") as caught:
        loaded(host)

    assert caught.value.path == path


def test_a_file_that_begins_in_the_middle_of_another_is_an_error() -> None:
    """So it is where the file size was another one."""
    host = SimulatedHost()
    put(host, file_name(0), data=b"x")
    put(host, file_name(1500), data=b"x")

    with pytest.raises(CorruptFileError, match="no file of 1000 bytes begins there"):
        loaded(host)


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_hole_in_the_sequence_is_named(*, is_clean: bool) -> None:
    """The missing file is, and nothing is removed."""
    host = SimulatedHost()
    for base in (0, SIZE, 3 * SIZE):
        put(host, file_name(base), data=b"x")

    with pytest.raises(MissingSegmentError) as caught:
        loaded(host, is_clean=is_clean)

    assert str(caught.value).startswith(f"{LOG}/{file_name(2 * SIZE)}: is missing")
    assert len(names(host)) == 3


def test_files_of_zeros_at_the_end_are_spares() -> None:
    """They were made ahead and hold nothing: the log does not reach into them."""
    host = SimulatedHost()
    put(host, file_name(0), data=b"x")
    put(host, file_name(SIZE))
    put(host, file_name(2 * SIZE))

    files = loaded(host)

    assert files.base_offsets() == [0]
    assert files.has_spare(SIZE)
    assert files.has_spare(2 * SIZE)


def test_a_lone_file_of_zeros_keeps_the_place_of_the_log() -> None:
    """Where all before it was removed the log must not begin at 0 again."""
    host = SimulatedHost()
    put(host, file_name(5 * SIZE))

    assert loaded(host).base_offsets() == [5 * SIZE]


def test_a_short_file_of_zeros_is_mended_after_a_crash() -> None:
    """It holds nothing; after a clean stop it is a wrong size like any other."""
    host = SimulatedHost()
    put(host, file_name(0), data=b"x")
    path = put(host, file_name(SIZE), 300)

    with pytest.raises(CorruptFileError):
        loaded(host)
    files = loaded(host, is_clean=False)

    assert files.has_spare(SIZE)
    assert read_file(host.fs, path) == bytes(SIZE)


def test_the_next_file_is_made_ahead_and_removed_at_a_clean_stop() -> None:
    """Java asks for the next and the one after; a clean stop leaves only what is used."""
    host = SimulatedHost()
    log = MappedFileQueue[MessageEntry, CommitLogFile](loaded(host))
    assert names(host) == [file_name(0), file_name(SIZE)]

    log.append(draft(body=bytes(100)).stamped(log.next_offset))
    log.roll()
    assert names(host) == [file_name(0), file_name(SIZE), file_name(2 * SIZE)]
    log.append(draft(body=bytes(100)).stamped(log.next_offset))
    log.close(is_clean=False)
    assert len(names(host)) == 3

    log = MappedFileQueue[MessageEntry, CommitLogFile](loaded(host, is_clean=False), 0)
    log.close()
    assert names(host) == [file_name(0), file_name(SIZE)]


def test_name_and_size_of_a_file_are_durable_before_anything_stands_in_it() -> None:
    """No crash leaves a file of a wrong size or a hole, which Java would not open."""
    host = SimulatedHost()
    log = MappedFileQueue[MessageEntry, CommitLogFile](loaded(host))
    for _ in range(3):
        log.append(draft(body=bytes(100)).stamped(log.next_offset))
        log.roll()
    host.power_loss(LOSE_UNSYNCED)

    assert [entry.size_bytes for entry in host.fs.list_directory(LOG)] == [SIZE] * 5
    assert loaded(host, is_clean=False).base_offsets() == []


def test_a_spare_that_cannot_be_made_is_tried_again() -> None:
    """The roll that wanted it succeeds all the same."""
    host = SimulatedHost()
    host.fs.faults.fail_next("open", 28, path=f"{LOG}/{file_name(SIZE)}")
    log = MappedFileQueue[MessageEntry, CommitLogFile](loaded(host))
    assert names(host) == [file_name(0)]

    log.append(draft(body=bytes(100)).stamped(0))
    log.roll()

    assert names(host) == [file_name(0), file_name(SIZE), file_name(2 * SIZE)]


def test_a_file_whose_size_may_not_last_is_no_spare() -> None:
    """The next start would take what was not synced for one that is ready."""
    host = SimulatedHost()
    path = f"{LOG}/{file_name(SIZE)}"
    host.fs.faults.fail_next("sync", 5, path=path)
    MappedFileQueue[MessageEntry, CommitLogFile](loaded(host))
    assert names(host) == [file_name(0)]
    host.fs.faults.clear()
    assert not loaded(host, is_clean=False).has_spare(SIZE)
