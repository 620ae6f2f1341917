"""Errors of Spark's workers, told in the driver as they were raised."""

from __future__ import annotations

import errno
import os

import pytest

from logstore.compat.spark.convert.carried_errors import CarriedError, Carrying, packed, unpacked
from logstore.errors import CorruptEntryError


def test_an_error_comes_back_from_the_middle_of_a_text() -> None:
    """Its kind, its text and its fields, whatever stands around it."""
    error = CorruptEntryError("/data/t-0/0.log", 4711, "the CRC is wrong")
    text = f"Job aborted: PythonException:\n  {CarriedError(packed(error))}\n\tat org.apache.spark"
    found = unpacked(text)
    assert isinstance(found, CorruptEntryError)
    assert str(found) == "/data/t-0/0.log: position 4711: the CRC is wrong"
    assert (found.path, found.position) == ("/data/t-0/0.log", 4711)
    assert unpacked("Job aborted: no error of ours") is None


@pytest.mark.parametrize("path", [None, "/data/file"])
def test_a_full_disk_is_still_known_for_one(path: str | None) -> None:
    """What is done about it depends on its number."""
    text = os.strerror(errno.ENOSPC)
    error = OSError(errno.ENOSPC, text) if path is None else OSError(errno.ENOSPC, text, path)
    found = unpacked(packed(error))
    assert isinstance(found, OSError)
    assert (found.errno, found.strerror, found.filename) == (errno.ENOSPC, text, path)


def test_only_expected_errors_are_carried() -> None:
    """A mistake in the code keeps its own traceback."""

    def fail(error: Exception) -> None:
        raise error

    carrying = Carrying(fail)
    with pytest.raises(CarriedError, match="position 7: bad logstore-error:"):
        carrying(CorruptEntryError("f", 7, "bad"))
    with pytest.raises(ZeroDivisionError):
        carrying(ZeroDivisionError())
    assert Carrying(str)(b"fine") == "b'fine'"
