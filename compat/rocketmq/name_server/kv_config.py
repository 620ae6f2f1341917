"""The name server's key-value table: ``kvConfig.json``, all that it keeps on disk."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from logstore.errors import StorageError
from logstore.host import Host, read_file, write_file

#: where order topics are listed: value ``broker-a:4;broker-b:4`` by topic
ORDER_NAMESPACE = "ORDER_TOPIC_CONFIG"


class KvConfigError(StorageError):
    """The file of the key-value table cannot be read or written."""


class KvConfig:
    """
    Values by namespace and key (``KVConfigManager``). The file is written at every change.

    Raises, on opening:
        KvConfigError: the file is there and is not what it should be.
    """

    def __init__(self, host: Host, path: str) -> None:
        self._fs = host.fs
        self._path = path
        self._table: dict[str, dict[str, str]] = {}
        if self._fs.exists(path):
            self._table = self._read()

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            content = orjson.loads(read_file(self._fs, self._path))
            return {
                str(namespace): {str(key): str(value) for key, value in values.items()}
                for namespace, values in content.get("configTable", {}).items()
            }
        except (ValueError, AttributeError) as error:
            raise KvConfigError(
                f"{self._path}: is no key-value table ({error}); repair it, or move it away to "
                "start without"
            ) from error

    def get(self, namespace: str, key: str) -> str | None:
        """Return a value, None if there is none."""
        return self._table.get(namespace, {}).get(key)

    def namespace(self, namespace: str) -> Mapping[str, str] | None:
        """Return all values of a namespace; None if nobody ever put one there."""
        return self._table.get(namespace)

    def put(self, namespace: str, key: str, value: str) -> None:
        """Set a value."""
        self._table.setdefault(namespace, {})[key] = value
        self._write()

    def delete(self, namespace: str, key: str) -> None:
        """Remove a value; one that is not there is fine."""
        if self._table.get(namespace, {}).pop(key, None) is not None:
            self._write()

    def _write(self) -> None:
        """Write the file anew; the old one is kept as its backup."""
        fs, path = self._fs, self._path
        content = orjson.dumps({"configTable": self._table}, option=orjson.OPT_INDENT_2)
        try:
            folder = path.rpartition("/")[0]
            if not fs.exists(folder):
                fs.make_directory(folder)
                fs.sync_directory(folder.rpartition("/")[0])
            if fs.exists(path):
                write_file(fs, f"{path}.bak", read_file(fs, path))
            write_file(fs, path, content)
        except OSError as error:
            raise KvConfigError(f"{path}: cannot be written: {error.strerror}") from error
