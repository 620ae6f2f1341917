"""The directory itself: whose it is, who has it, what may lie in it."""

from __future__ import annotations

import pytest

from logstore.errors import CorruptFileError, ForeignDirectoryError, LockedError
from logstore.host import read_file, write_file
from logstore.segments.kafka.data_directory import DataDirectory
from logstore.testing import SimulatedHost

DATA = "/a/data"
META = f"{DATA}/meta.properties"


@pytest.fixture
def host() -> SimulatedHost:
    """An empty world."""
    return SimulatedHost()


def opened(
    host: SimulatedHost, *, is_writable: bool = True, node_id: int | None = None
) -> DataDirectory:
    """Open DATA."""
    return DataDirectory(host, DATA, is_writable=is_writable, node_id=node_id)


def purge(directory: DataDirectory) -> None:
    """Remove what is due, if anything is."""
    remove = directory.purging()
    if remove is not None:
        remove()


def names(host: SimulatedHost, directory: str = DATA) -> list[str]:
    """Return what is in a directory."""
    return [entry.name for entry in host.fs.list_directory(directory)]


class TestNode:
    """Whose it is."""

    def test_a_new_one_belongs_to_who_asks_for_it(self, host: SimulatedHost) -> None:
        """Node 0 is a node like others."""
        directory = opened(host, node_id=0)
        assert directory.node_id == 0
        assert directory.meta is not None
        assert directory.meta.node_id == 0
        assert b"\nnode.id=0\n" in read_file(host.fs, META)

    def test_a_new_one_of_nobody_is_node_1(self, host: SimulatedHost) -> None:
        """Which is what a broker without settings is."""
        assert opened(host).node_id == 1
        assert b"\nnode.id=1\n" in read_file(host.fs, META)

    @pytest.mark.parametrize("is_writable", [True, False])
    def test_who_names_no_node_gets_that_of_the_directory(
        self, host: SimulatedHost, is_writable: bool
    ) -> None:
        """A directory that was copied from another broker opens as it is."""
        opened(host, node_id=7).release()
        assert opened(host, is_writable=is_writable).node_id == 7

    @pytest.mark.parametrize("is_writable", [True, False])
    def test_that_of_another_node_is_refused(self, host: SimulatedHost, is_writable: bool) -> None:
        """The file, both ids and the ways out are named; nothing was changed, the lock is free."""
        opened(host, node_id=1).release()
        before = names(host), read_file(host.fs, META)
        with pytest.raises(ForeignDirectoryError) as refused:
            opened(host, is_writable=is_writable, node_id=7)
        assert str(refused.value) == (
            f"{META}: node.id is 1, but this broker is to be node 7; to serve this data set "
            "node.id=1 or leave it out, for a new node name an empty directory"
        )
        assert (names(host), read_file(host.fs, META)) == before
        assert opened(host, node_id=1).node_id == 1

    def test_one_that_names_no_node_is_anybodys(self, host: SimulatedHost) -> None:
        """So it may be in version 0, of the time of ZooKeeper; broker.id is the node there."""
        host.fs.make_directory(DATA)
        write_file(host.fs, META, b"cluster.id=c\n")
        for node_id, found in ((7, 7), (0, 0), (None, 1)):
            directory = opened(host, node_id=node_id)
            assert directory.node_id == found
            directory.release()
        write_file(host.fs, META, b"broker.id=3\n")
        with pytest.raises(ForeignDirectoryError, match=r"meta\.properties: broker\.id is 3, but"):
            opened(host, node_id=7)
        assert opened(host).node_id == 3

    def test_who_only_reads_gives_no_identity(self, host: SimulatedHost) -> None:
        """Partitions that somebody copied have none, and may be read all the same."""
        host.fs.make_directory(f"{DATA}/t-0")
        directory = opened(host, is_writable=False)
        assert (directory.meta, directory.node_id) == (None, 1)
        assert names(host) == ["t-0"]


class TestLock:
    """Who has it."""

    def test_one_writer_at_a_time(self, host: SimulatedHost) -> None:
        """A second one is refused with the file that says so; readers need no lock."""
        directory = opened(host)
        with pytest.raises(
            LockedError, match=r"/data/\.lock: another broker serves this directory"
        ):
            opened(host)
        opened(host, is_writable=False).release()
        directory.release()
        opened(host)

    def test_an_identity_that_cannot_be_read_lets_the_lock_go(self, host: SimulatedHost) -> None:
        """Whoever mends the file need not restart anything else."""
        opened(host).release()
        meta = read_file(host.fs, META)
        write_file(host.fs, META, b"version=9\n")
        with pytest.raises(CorruptFileError, match="unknown version 9"):
            opened(host)
        write_file(host.fs, META, meta)
        opened(host)


class TestContent:
    """What may lie in it."""

    def test_what_is_something_else_is_refused(self, host: SimulatedHost) -> None:
        """A file, a directory of something else; nothing is written there."""
        write_file(host.fs, "/file", b"")
        with pytest.raises(ForeignDirectoryError, match="/file: is a file; name a directory"):
            DataDirectory(host, "/file")
        host.fs.make_directory("/photos/summer")
        with pytest.raises(
            ForeignDirectoryError, match="/photos/summer: does not belong into a Kafka"
        ):
            DataDirectory(host, "/photos")
        assert names(host, "/photos") == ["summer"]

    def test_partitions_are_found_by_name(self, host: SimulatedHost) -> None:
        """What moves, is stray, or is no partition at all is left alone."""
        directory = opened(host)
        unique = "0123456789abcdef0123456789abcdef"
        for name in (
            "b-1", "b-0", "a-10", "a-2", "__cluster_metadata-0", "lost+found",
            f"c-0.{unique}-future", f"c-1.{unique}-stray",
        ):  # fmt: skip
            host.fs.make_directory(f"{DATA}/{name}")
        before = names(host)
        assert [place.name for place in directory.partitions()] == ["a-10", "a-2", "b-0", "b-1"]
        purge(directory)
        assert names(host) == before

    def test_a_name_that_is_no_partitions_is_refused(self, host: SimulatedHost) -> None:
        """Kafka would not start either; what is meant by t-00 nobody knows, if there is a t-0."""
        directory = opened(host)
        for name, words in (
            ("nonsense", "holds partitions only"),
            ("t-00", "partition 0 of a topic stands in t-0; rename it, or move it away"),
        ):
            host.fs.make_directory(f"{DATA}/{name}")
            with pytest.raises(ForeignDirectoryError, match=f"{DATA}/{name}: .*{words}"):
                directory.partitions()
            host.fs.remove_directory(f"{DATA}/{name}")

    def test_the_condemned_go_when_they_are_due(self, host: SimulatedHost) -> None:
        """Renamed at once; those of an earlier broker are due when they are found."""
        directory = opened(host)
        for name in ("t-0", "t-1"):
            host.fs.make_directory(f"{DATA}/{name}")
        directory.condemn("t", 1, 1000)
        assert [place.name for place in directory.partitions()] == ["t-0"]
        (condemned,) = (name for name in names(host) if name.endswith("-delete"))
        assert condemned.startswith("t-1.")
        directory.release()
        directory = opened(host)
        purge(directory)
        assert condemned in names(host), "nobody has looked yet"
        directory.partitions()
        directory.condemn("t", 0, 1000)
        purge(directory)
        assert condemned not in names(host)
        assert sum(name.endswith("-delete") for name in names(host)) == 1
        host.clock.advance(1000)
        purge(directory)
        assert sum(name.endswith("-delete") for name in names(host)) == 0

    def test_one_that_cannot_be_made_or_written_is_named(self, host: SimulatedHost) -> None:
        """The error says which one and that it must be writable."""
        host.fs.faults.is_read_only = True
        with pytest.raises(
            ForeignDirectoryError, match=r"/data: cannot be created: .*may write to"
        ):
            opened(host)
        host.fs.faults.clear()
        host.fs.make_directory(DATA)
        host.fs.faults.is_read_only = True
        with pytest.raises(ForeignDirectoryError, match=r"/data/\.lock: cannot be written: "):
            opened(host)

    def test_a_new_one_outlives_a_power_loss(self, host: SimulatedHost) -> None:
        """With all the directories above it that were made for it."""
        opened(host)
        meta = read_file(host.fs, META)
        host.power_loss()
        assert read_file(host.fs, META) == meta
