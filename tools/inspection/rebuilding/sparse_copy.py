"""Copies that leave out what was never written: preallocated files are nearly all of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection

from logstore.errors import StorageError
from logstore.os_host import SystemFileSystem
from logstore.tools.os_failure import os_failure

_STEP_BYTES = 1024 * 1024


def copy_sparsely(source: str, target: str) -> str:
    """
    Copy a file with its times and mode, its holes as holes; return `target`.

    A RocketMQ index file has 420 MB for its first entry, and a commit log 1 GiB.
    """
    fs = SystemFileSystem()
    read, write = fs.open(source, writable=False), fs.open(target, create=True)
    try:
        write.truncate(read.size())
        position: int | None = 0
        while position is not None and (position := read.next_data(position)) is not None:
            data = read.read(position, _STEP_BYTES)
            write.write(position, data)
            position = position + len(data) if data else None
    finally:
        read.close()
        write.close()
    shutil.copystat(source, target)
    return target


def copy_tree(source: str, target: str, left_out: Collection[str] = ()) -> None:
    """
    Copy what is in a directory into another one, but for names that are left out.

    The first file that cannot be copied ends it: on a full disk the others are no news.

    Raises:
        StorageError: says which one, and what can be done.

    """

    def names(folder: str, found: list[str]) -> set[str]:
        return set(left_out) & set(found) if folder == source else set()

    def copy(one: str, other: str) -> str:
        try:
            return copy_sparsely(one, other)
        except OSError as error:
            raise StorageError(os_failure(error)) from error

    try:
        shutil.copytree(source, target, ignore=names, copy_function=copy, dirs_exist_ok=True)
    except shutil.Error as error:
        found: list[tuple[str, str, str]] = error.args[0]
        raise StorageError(found[0][2]) from error
    os.chmod(target, os.stat(target).st_mode | 0o700)
