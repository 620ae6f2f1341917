"""The states of a share group."""

from __future__ import annotations

from enum import Enum


class ShareGroupState(Enum):
    """
    Where a share group stands; the value is the word that clients see.

    Source: ``ShareGroup.ShareGroupState``.
    """

    #: no members; it lives on until somebody deletes it
    EMPTY = "Empty"
    #: it has members
    STABLE = "Stable"
    #: not there
    DEAD = "Dead"
