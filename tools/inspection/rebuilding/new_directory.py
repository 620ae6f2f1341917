"""A directory that is empty until all that belongs into it is there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress

WORK_FOLDER = ".unfinished"
#: what makes a directory a store for whoever looks at it
_LOG = "commitlog"


def is_free(target: str) -> bool:
    """Tell whether something new may be made of `target`: there is nothing but a work folder."""
    return not os.path.exists(target) or (
        os.path.isdir(target) and not set(os.listdir(target)) - {WORK_FOLDER}
    )


@contextmanager
def new_directory(target: str) -> Generator[str]:
    """
    Yield a folder to work in; what is in it moves into `target` at the end.

    Where it does not come to that (Ctrl-C, a full disk) the folder goes; what `kill -9` leaves of
    it the next one removes. It is in the target, which may be the root of a volume of its own.
    """
    is_made = not os.path.exists(target)
    work = f"{target}/{WORK_FOLDER}"
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    try:
        yield work
        for name in sorted(os.listdir(work), key=lambda name: (name == _LOG, name)):
            os.rename(f"{work}/{name}", f"{target}/{name}")
        os.rmdir(work)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        if is_made:
            with suppress(OSError):
                os.rmdir(target)
        raise
