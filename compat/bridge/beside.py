"""The directory beside the data, in which a protocol keeps what the layout has no place for."""

from __future__ import annotations

from logstore.errors import ForeignDirectoryError
from logstore.host import Host

#: stands in every such directory: nothing else is taken for one
MARKER = ".beside-the-data"
_TEXT = (
    "What the {protocol} protocol needs beside {directory}, which has the records.\n"
    "Without this directory it is made anew; with it move both.\n"
)


def directory_beside(directory: str, protocol: str) -> str:
    """Return where a protocol keeps what the layout in `directory` has no place for."""
    return f"{directory.rstrip('/')}.{protocol}"


def claim_beside(host: Host, directory: str, protocol: str) -> str:
    """
    Return the directory beside `directory`, made if there is none.

    Raises:
        ForeignDirectoryError: there is one that was made for something else.

    """
    fs, path = host.fs, directory_beside(directory, protocol)
    marker = f"{path}/{MARKER}"
    if fs.is_directory(path):
        if fs.exists(marker):
            return path
        if fs.list_directory(path):
            raise ForeignDirectoryError(
                f"{path}: the {protocol} protocol would keep here what it needs beside "
                f"{directory}, but this is something else; move it away, or rename the data"
            )
    else:
        fs.make_directory(path)
    file = fs.open(marker, create=True)
    try:
        file.write(0, _TEXT.format(protocol=protocol, directory=directory).encode())
        file.sync()
    finally:
        file.close()
    fs.sync_directory(path)
    return path
