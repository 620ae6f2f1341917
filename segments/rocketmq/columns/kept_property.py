"""What is reckoned when it is first asked for and kept then, without a lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

OwnerT = TypeVar("OwnerT")
ValueT = TypeVar("ValueT")


class kept_property(Generic[OwnerT, ValueT]):  # noqa: N801 - it stands where `property` does
    """
    As :class:`functools.cached_property`, which takes a lock up to Python 3.11.

    A step of a decoder has a dozen of these, and the locks take longer than most of the work.
    """

    def __init__(self, function: Callable[[OwnerT], ValueT]) -> None:
        self._function = function
        self._name = function.__name__
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, owner: None, kind: type[OwnerT]) -> kept_property[OwnerT, ValueT]: ...

    @overload
    def __get__(self, owner: OwnerT, kind: Any) -> ValueT: ...

    def __get__(self, owner: OwnerT | None, kind: Any) -> ValueT | kept_property[OwnerT, ValueT]:
        """Reckon it; from now on it is found in the owner, and nothing is called."""
        if owner is None:
            return self
        value = self._function(owner)
        owner.__dict__[self._name] = value
        return value
