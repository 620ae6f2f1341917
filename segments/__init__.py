"""
The layouts: what bytes stand on disk. :func:`open_store` knows a layout by its directory.

A layout is a :class:`logstore.partition.Layout` registered under the entry-point group
``logstore.layouts``, by the name that ``--layout`` takes. The built-in ones register too; they are
also known here by name, for a checkout that was never installed.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from logstore.errors import ForeignDirectoryError, LogStoreError
from logstore.partition import LAYOUT_GROUP, Layout, Store

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from pathlib import Path

    from logstore.host import Host

#: name -> ``module:attribute`` of the layouts that come with this distribution
BUILT_IN_LAYOUTS = {
    "kafka": "logstore.segments.kafka.store:LAYOUT",
    "rocketmq": "logstore.segments.rocketmq.store:LAYOUT",
}


#: ``<target>.converting`` is where a conversion works until its target is whole
UNFINISHED_SUFFIX = ".converting"


class UnknownLayoutError(LogStoreError):
    """A layout was asked for by a name that nobody registered, or that cannot be imported."""


class UnfinishedConversionError(ForeignDirectoryError):
    """A directory is where a conversion works, or the target of one that is not finished."""


def layout_names() -> list[str]:
    """Return the names of all layouts, built-in and registered, in order."""
    return list(_entries())


def find_layout(name: str) -> Layout:
    """
    Return the layout of that name; only its own module is imported.

    Raises:
        UnknownLayoutError: nobody registered it, or its module cannot be imported.

    """
    entries = _entries()
    if name not in entries:
        _registered.cache_clear()  # it may have been installed since
        entries = _entries()
    if name not in entries:
        raise UnknownLayoutError(f"layout {name!r} is not known; there are: {', '.join(entries)}")
    entry = entries[name]
    try:
        layout: Layout = entry.load()
    except (ImportError, AttributeError) as error:
        raise UnknownLayoutError(
            f"layout {name!r} ({entry.value}) cannot be imported: {error}"
        ) from error
    return layout


def recognise_layout(host: Host, directory: str, names: Iterable[str] | None = None) -> Layout:
    """
    Return the first layout, by name, that knows `directory` for its own.

    Raises:
        ForeignDirectoryError: none does, there is no such directory, or it is that of a
            conversion that is not finished.

    """
    _refuse_unfinished(host, directory)
    if not host.fs.exists(directory):
        raise ForeignDirectoryError(f"{directory}: there is no such directory")
    if not host.fs.is_directory(directory):
        raise ForeignDirectoryError(f"{directory}: is a file; name the store's directory")
    asked = layout_names() if names is None else list(names)
    for name in asked:
        layout = find_layout(name)
        if layout.recognises(host, directory):
            return layout
    raise ForeignDirectoryError(
        f"{directory}: no store of a known layout ({', '.join(asked)}); name a directory that a "
        "broker wrote, all of it and not one partition, or say which layout it has"
    )


def _refuse_unfinished(host: Host, directory: str) -> None:
    """Say so where a conversion into this directory, or in it, was begun and not finished."""
    path = directory.rstrip("/")
    target = path.removesuffix(UNFINISHED_SUFFIX)
    if path != target and host.fs.is_directory(path):
        raise UnfinishedConversionError(
            f"{directory}: a conversion into {target} that is not finished; run it again to go on "
            "with it, or remove this folder"
        )
    if not host.fs.exists(path) and host.fs.is_directory(path + UNFINISHED_SUFFIX):
        raise UnfinishedConversionError(
            f"{directory}: its conversion is not finished, in {path}{UNFINISHED_SUFFIX}; run it "
            "again to go on with it"
        )


def open_store(
    path: str | Path,
    *,
    layout: str | None = None,
    writable: bool = False,
    host: Host | None = None,
) -> Store:
    """
    Open the store in a directory, whatever its layout; `layout` says which instead of looking.

    By default nothing is written or locked, so a live broker's directory may be looked into.
    `writable` takes the lock, recovers after an unclean stop, and needs `close()` in the end.

    Raises:
        ForeignDirectoryError: the directory is missing, or no layout knows it.
        UnknownLayoutError: there is no layout of the name asked for.
        StorageError: what else the layout raises on opening (locked, corrupt).

    """
    from pathlib import Path  # milliseconds, which a broker's start need not take

    if host is None:
        # Here and not above: whoever brings a host of his own never touches the real one.
        from logstore.os_host import system_host

        host = system_host()
    directory = str(Path(path).absolute())
    chosen = recognise_layout(host, directory) if layout is None else find_layout(layout)
    return chosen.open(host, directory, writable=writable)


def _entries() -> dict[str, EntryPoint]:
    """Return the entry point of each layout by name; a registered one wins over a built-in one."""
    # Metadata takes tens of milliseconds to import; a broker's start needs none of it.
    from importlib.metadata import EntryPoint

    found = {
        name: EntryPoint(name, value, LAYOUT_GROUP) for name, value in BUILT_IN_LAYOUTS.items()
    }
    found.update({entry.name: entry for entry in _registered()})
    return dict(sorted(found.items()))


@cache
def _registered() -> tuple[EntryPoint, ...]:
    """Return what is registered: looking through all that is installed takes milliseconds."""
    import importlib.metadata

    return tuple(importlib.metadata.entry_points(group=LAYOUT_GROUP))
