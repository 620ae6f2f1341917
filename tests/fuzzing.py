"""What every fuzz test goes by: how many rounds, with which seeds, and what fails one."""

from __future__ import annotations

import os
import random
import time
import traceback
from collections.abc import Callable, Iterator

from logstore.errors import LogStoreError

#: what ``./dev fuzz`` asks for, in all; without it a test takes a moment, and always the same seeds
ASKED_SECONDS = float(os.environ.get("LOGSTORE_FUZZ_SECONDS", "0"))
USUAL_SECONDS = 0.3
#: of CPU time, which a machine that stalls does not use up
STEP_SECONDS_MAX = 5.0
_SHOWN_BYTES = 2000


def rounds(parts: int, share: int = 1) -> Iterator[tuple[int, random.Random]]:
    """Yield a seed and its chance until `share` of `parts` of the time asked for is over."""
    seconds = ASKED_SECONDS / parts if ASKED_SECONDS else USUAL_SECONDS
    first = random.SystemRandom().randrange(1 << 48) if ASKED_SECONDS else 0
    deadline = time.monotonic() + seconds * share
    seed = first
    while time.monotonic() < deadline or seed == first:
        yield seed, random.Random(seed)
        seed += 1


def complaint(seed: int, data: bytes, work: Callable[[], object]) -> str:
    """
    Do the work; return what is wrong with it, nothing if it ends in time or with an error of ours.

    The text names the seed, and shows the data.
    """
    began = time.process_time()
    try:
        work()
    except LogStoreError:
        pass
    except Exception:  # noqa: BLE001 - whatever it is, it is what is wrong
        return f"seed {seed}, over {data[:_SHOWN_BYTES].hex()}:\n{traceback.format_exc()}"
    seconds = time.process_time() - began
    if seconds < STEP_SECONDS_MAX:
        return ""
    return f"seed {seed}: {seconds} s over {data[:_SHOWN_BYTES].hex()}"
