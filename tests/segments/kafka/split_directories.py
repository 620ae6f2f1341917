"""A data directory made two, as of a node with two entries in ``log.dirs``."""

from __future__ import annotations

import shutil
from pathlib import Path


def split_in_two(data: Path, folder: Path) -> tuple[Path, Path]:
    """
    Copy `data` into two directories in `folder`, with every second partition in the second.

    The files beside the partitions are in both, the cluster's metadata in the first alone.
    """
    first, second = folder / "first", folder / "second"
    for directory in (first, second):
        directory.mkdir()
    number = 0
    for path in sorted(data.iterdir()):
        if path.is_file():
            for directory in (first, second):
                shutil.copy(path, directory / path.name)
            continue
        is_partition = not path.name.startswith("__cluster")
        shutil.copytree(path, (second if is_partition and number % 2 else first) / path.name)
        number += is_partition
    return first, second
