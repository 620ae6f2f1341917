"""What the operating system refused, in one line: the file, the reason, and what helps."""

from __future__ import annotations

import errno

_PERMISSION = "name what you may read and write, or run this as its owner"
_REMEDIES = {
    errno.EACCES: _PERMISSION,
    errno.EPERM: _PERMISSION,
    errno.EROFS: "name a place that can be written to",
    errno.ENOSPC: "make room on that disk",
    errno.EDQUOT: "make room in your quota of that disk",
    errno.EMFILE: "allow this process more open files (ulimit -n)",
    errno.EIO: "the disk is failing: copy what can still be read",
}


def os_failure(error: OSError) -> str:
    """Return ``FILE: REASON; REMEDY``, without what is not known of it."""
    place = f"{error.filename}: " if error.filename else ""
    remedy = _REMEDIES.get(error.errno or 0)
    return f"{place}{error.strerror or error}" + (f"; {remedy}" if remedy else "")
