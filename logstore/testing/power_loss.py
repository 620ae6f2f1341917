"""What survives when the power goes."""

from __future__ import annotations

import enum

import attrs


class PowerLost(BaseException):
    """
    The machine is off: the operation did not happen, and nothing happens until it is on again.

    Not an ``Exception``, because nobody handles a power loss: the code under test must stop as if
    it had vanished, even inside ``except Exception``.
    """


class Kept(enum.Enum):
    """How much of one kind of unsynced change survives."""

    NOTHING = enum.auto()
    SOME = enum.auto()
    EVERYTHING = enum.auto()


@attrs.frozen
class PowerLoss:
    """
    One way in which the power can go. What was synced survives every way.

    `data` is about the 512-byte sectors of unsynced writes and truncations, `sizes` about file
    sizes, `names` about creations, renames and removals. ``Kept.SOME`` rolls dice from `seed`.
    """

    data: Kept = Kept.NOTHING
    sizes: Kept = Kept.NOTHING
    names: Kept = Kept.NOTHING
    seed: int = 0
    #: cut the last unsynced write of every file after so many of its bytes
    torn_at_bytes: int | None = None

    @staticmethod
    def random(seed: int) -> PowerLoss:
        """Return a loss of which the dice decide everything."""
        return PowerLoss(Kept.SOME, Kept.SOME, Kept.SOME, seed)

    @staticmethod
    def torn(size_bytes: int) -> PowerLoss:
        """Keep all but the last write of every file, and `size_bytes` of that."""
        return attrs.evolve(KEEP_EVERYTHING, torn_at_bytes=size_bytes)


#: The cautious disk: exactly what was synced.
LOSE_UNSYNCED = PowerLoss()
#: The diligent disk: as after the death of the process alone.
KEEP_EVERYTHING = PowerLoss(Kept.EVERYTHING, Kept.EVERYTHING, Kept.EVERYTHING)
#: Files are there but empty or short: the classic of "rename without sync".
NAMES_WITHOUT_DATA = PowerLoss(names=Kept.EVERYTHING)
#: Files have their new length but hold zeros: what XFS and ext4 show after delayed allocation.
SIZES_WITHOUT_DATA = PowerLoss(sizes=Kept.EVERYTHING, names=Kept.EVERYTHING)
#: The bytes arrived but the directory did not: new files are gone, removed ones are back.
DATA_WITHOUT_NAMES = PowerLoss(data=Kept.EVERYTHING, sizes=Kept.EVERYTHING)
#: Overwritten bytes arrived, the length did not: what was appended is cut off.
DATA_WITHOUT_SIZES = PowerLoss(data=Kept.EVERYTHING, names=Kept.EVERYTHING)

#: The six corners. A crash test tries these and a few random ones at every point.
CORNERS = (
    LOSE_UNSYNCED,
    KEEP_EVERYTHING,
    NAMES_WITHOUT_DATA,
    SIZES_WITHOUT_DATA,
    DATA_WITHOUT_NAMES,
    DATA_WITHOUT_SIZES,
)
