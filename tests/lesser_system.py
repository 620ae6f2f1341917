"""
Takes away what Linux has and macOS has not, so that tests run as they would there.

`./dev test -p tests.lesser_system` runs any of them so. It cannot show what macOS does in its own
way, only that nothing asks for what is not there.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import select
import socket
from typing import Any

# These look once for what the system has, as they are imported.
for _early in ("asyncio", "multiprocessing.connection"):
    importlib.import_module(_early)

_LINUX_ALONE = {
    os: (
        "O_DIRECT",
        "O_NOATIME",
        "O_PATH",
        "POSIX_FADV_DONTNEED",
        "POSIX_FADV_RANDOM",
        "POSIX_FADV_WILLNEED",
        "RWF_NOWAIT",
        "copy_file_range",
        "eventfd",
        "fdatasync",
        "getrandom",
        "memfd_create",
        "pidfd_open",
        "pipe2",
        "posix_fadvise",
        "posix_fallocate",
        "sched_getaffinity",
        "sched_setaffinity",
        "splice",
    ),
    select: ("epoll",),  # the constants stay, for libraries that have chosen it by now
    socket: (
        "SOCK_CLOEXEC",
        "SOCK_NONBLOCK",
        "TCP_QUICKACK",
        "TCP_USER_TIMEOUT",
        "MSG_NOSIGNAL",
    ),
}

for _module, _names in _LINUX_ALONE.items():
    for _name in _names:
        if hasattr(_module, _name):
            delattr(_module, _name)


class _WithoutSyncfs(ctypes.CDLL):
    def __getattr__(self, name: str) -> Any:
        if name == "syncfs":
            raise AttributeError(name)
        return super().__getattr__(name)


ctypes.CDLL = _WithoutSyncfs  # type: ignore[misc]
