"""What a broker is told of the machine that it runs on."""

from __future__ import annotations

import attrs


@attrs.frozen
class Machine:
    """
    Where a broker runs: its process id, which ``abort`` tells, and how much memory there is.

    What lies farther back in the log than some part of the memory counts as being on the disk;
    None is Java's guess.
    """

    process_id: int = 0
    memory_bytes: int | None = None
