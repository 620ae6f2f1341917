"""
Folders of files that follow one another go as a whole, or not at all.

File by file a power loss could leave the first and the last ones, and no start would take those. So
a folder gets a name first under which nobody looks for it: queues' folders have numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logstore.host import FileSystem

#: Java passes over folders whose names are no numbers
_SUFFIX = ".deleted"


def remove_whole(fs: FileSystem, directory: str) -> None:
    """Remove a folder with all that is in it; fine if it is not there. Raises OSError."""
    if not fs.is_directory(directory):
        return
    aside = directory + _SUFFIX
    fs.remove_directory(aside)
    fs.rename(directory, aside)
    fs.sync_directory(directory.rpartition("/")[0] or "/")
    fs.remove_directory(aside)


def remove_leftovers(fs: FileSystem, parent: str) -> bool:
    """Remove what a crash has left of removed folders in `parent`; tell whether that was any."""
    names = [
        entry.name
        for entry in fs.list_directory(parent)
        if entry.is_directory and entry.name.endswith(_SUFFIX)
    ]
    for name in names:
        fs.remove_directory(f"{parent}/{name}")
    return bool(names)
