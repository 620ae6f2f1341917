"""Brokers end and come back while index files are taken away; old log files are deleted."""

from __future__ import annotations

import time
from pathlib import Path

from logstore.compat.rocketmq.wire.codes import RequestCode as Code
from tests.interop.drawn_rocketmq import keys
from tests.interop.drawn_rocketmq.twin import Difference
from tests.interop.drawn_rocketmq.world import World

RESTARTS_MAX, REMOVALS_MAX = 2, 1
#: a real broker looks for old files a minute after its start, and every ten seconds from then on
REMOVED_SECONDS_MAX = 100
PAUSE_SECONDS = 0.2


def restart(world: World) -> None:
    """End both and start them again; meanwhile index files may go."""
    if world.restarts >= RESTARTS_MAX:
        return
    assert world.stage is not None
    world.restarts += 1
    world.twin.hang_up_everywhere("a restart")
    world.stage.stop(kill=False)
    keys.compare_files(world)
    which = world.pick("none", "none", "last", "first", "all")
    world.twin.steps.append(f"index files taken away: {which}")
    for data in world.stage.data():
        files = names_in(data / "index")
        chosen = {"none": [], "last": files[-1:], "first": files[:1], "all": files}[which]
        for name in chosen:
            (data / "index" / name).unlink()
    world.stage.start()
    # A clean start has put nothing into the index anew.
    keys.compare_files(world)


def remove_old(world: World) -> None:
    """Have all log files deleted but the last, and what leads to them."""
    if world.removals >= REMOVALS_MAX:
        return
    assert world.stage is not None
    world.removals += 1
    world.ask(Code.UPDATE_BROKER_CONFIG, None, b"fileReservedTime=0", is_plain=True)
    world.ask(Code.DELETE_EXPIRED_COMMITLOG, {}, is_plain=True)
    deadline = time.monotonic() + REMOVED_SECONDS_MAX
    while True:
        ours, real = (
            (names_in(data / "commitlog"), len(names_in(data / "index")))
            for data in world.stage.data()
        )
        if (ours == real and len(ours[0]) == 1) or time.monotonic() > deadline:
            break
        time.sleep(PAUSE_SECONDS)
    world.ask(Code.UPDATE_BROKER_CONFIG, None, b"fileReservedTime=72", is_plain=True)
    if ours != real:
        line = f"{ours} instead of {real}"
        world.twin.differences.append(Difference(len(world.twin.steps), "old files", [line]))


def names_in(directory: Path) -> list[str]:
    """Return the names of the files of a directory, oldest first."""
    return sorted(one.name for one in directory.iterdir()) if directory.exists() else []
