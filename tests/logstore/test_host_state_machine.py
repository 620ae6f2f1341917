"""Random operations have the same outcome on the simulated and on the real file system."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from logstore.host import File, FileSystem
from logstore.os_host import SystemFileSystem
from logstore.testing import ManualClock, SimulatedDisk

NAMES = st.sampled_from(["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "a/x", ""])
#: near the start, and around the places where the simulated content is cut into pieces
POSITIONS = st.one_of(
    st.integers(0, 40), st.integers(65_500, 65_560), st.integers(131_050, 131_090)
)
DATA = st.binary(max_size=60)


def outcome(call: Callable[[], object]) -> object:
    """Return what the call returns, or the number of the error that it raises."""
    try:
        return call()
    except OSError as error:
        return f"errno {error.errno}"


class TwoFileSystems(RuleBasedStateMachine):
    """Does everything twice."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.mkdtemp()
        simulated = SimulatedDisk(ManualClock())
        simulated.make_directory("/data")
        self.sides: list[tuple[FileSystem, str]] = [
            (SystemFileSystem(), self.directory),
            (simulated, "/data"),
        ]
        self.handles: list[tuple[File, File]] = []

    def teardown(self) -> None:
        """Give the real files back."""
        for pair in self.handles:
            for file in pair:
                file.close()
        shutil.rmtree(self.directory)

    def both(self, call: Callable[[FileSystem, str], object]) -> None:
        """Do it on both sides and compare."""
        real, simulated = self.sides
        assert outcome(lambda: call(*simulated)) == outcome(lambda: call(*real))

    def both_files(self, number: int, call: Callable[[File], object]) -> None:
        """Do it to one open file of both sides and compare."""
        real, simulated = self.handles[number % len(self.handles)]
        assert outcome(lambda: call(simulated)) == outcome(lambda: call(real))

    @rule(name=NAMES, create=st.booleans(), writable=st.booleans())
    def open(self, name: str, create: bool, writable: bool) -> None:
        """Open a file, if that is possible on both sides or on none."""
        opened: list[File] = []

        def call(fs: FileSystem, root: str) -> str:
            if not writable and fs.is_directory(f"{root}/{name}"):
                return "not asked for: POSIX opens directories, and lets no one read them"
            opened.append(fs.open(f"{root}/{name}", create=create, writable=writable))
            return "opened"

        self.both(call)
        if opened:
            self.handles.append((opened[1], opened[0]))

    @precondition(lambda self: self.handles)
    @rule(number=st.integers(0, 99), position=POSITIONS, data=DATA)
    def write(self, number: int, position: int, data: bytes) -> None:
        """Write through an open handle."""
        self.both_files(number, lambda file: file.write(position, data))

    @precondition(lambda self: self.handles)
    @rule(number=st.integers(0, 99), size_bytes=POSITIONS)
    def truncate(self, number: int, size_bytes: int) -> None:
        """Cut or extend through an open handle (a read-only one has two names for its error)."""

        def call(file: File) -> object:
            try:
                file.truncate(size_bytes)
            except OSError:
                return "refused"
            return "done"

        self.both_files(number, call)

    @precondition(lambda self: self.handles)
    @rule(number=st.integers(0, 99), position=POSITIONS, size_bytes=st.integers(0, 200_000))
    def read(self, number: int, position: int, size_bytes: int) -> None:
        """Read through an open handle."""
        self.both_files(number, lambda file: file.read(position, size_bytes))

    @precondition(lambda self: self.handles)
    @rule(number=st.integers(0, 99), position=POSITIONS, size_bytes=st.integers(0, 100))
    def read_into(self, number: int, position: int, size_bytes: int) -> None:
        """Read into a buffer through an open handle."""

        def call(file: File) -> object:
            target = bytearray(b"." * size_bytes)
            return file.read_into(position, memoryview(target)), target

        self.both_files(number, call)

    @precondition(lambda self: self.handles)
    @rule(number=st.integers(0, 99))
    def sync(self, number: int) -> None:
        """Sync an open handle."""
        self.both_files(number, lambda file: file.sync())

    @rule(name=NAMES)
    def make_directory(self, name: str) -> None:
        """Make a directory, or fail to."""
        self.both(lambda fs, root: fs.make_directory(f"{root}/{name}".rstrip("/")))

    @rule(old=NAMES.filter(bool), new=NAMES.filter(bool))
    def rename(self, old: str, new: str) -> None:
        """Rename anything to anything."""
        self.both(lambda fs, root: fs.rename(f"{root}/{old}", f"{root}/{new}"))

    @rule(name=NAMES.filter(bool))
    def remove(self, name: str) -> None:
        """Remove a file, or fail to."""
        self.both(lambda fs, root: fs.remove(f"{root}/{name}"))

    @rule(name=NAMES.filter(bool))
    def remove_directory(self, name: str) -> None:
        """Remove a tree."""
        self.both(lambda fs, root: fs.remove_directory(f"{root}/{name}"))

    @rule(name=NAMES)
    def sync_directory(self, name: str) -> None:
        """Sync a directory, or fail to."""
        self.both(lambda fs, root: fs.sync_directory(f"{root}/{name}"))

    @rule(name=NAMES)
    def look(self, name: str) -> None:
        """Ask what is there."""
        self.both(lambda fs, root: fs.exists(f"{root}/{name}"))
        self.both(lambda fs, root: fs.is_directory(f"{root}/{name}"))
        self.both(lambda fs, root: fs.list_directory(f"{root}/{name}"))

    @invariant()
    def open_files_have_equal_sizes(self) -> None:
        """Every handle sees the same length on both sides."""
        for real, simulated in self.handles:
            assert simulated.size() == real.size()


def test_nobody_can_tell_them_apart() -> None:
    """Whatever a program does, the simulated disk answers as the real one."""
    run_state_machine_as_test(
        TwoFileSystems,
        settings=settings(
            stateful_step_count=40, suppress_health_check=[HealthCheck.too_slow], deadline=None
        ),
    )
