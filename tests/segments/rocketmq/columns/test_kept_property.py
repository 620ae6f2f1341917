"""What is reckoned once: kept with its owner, and with nobody else."""

from __future__ import annotations

import attrs

from logstore.segments.rocketmq.columns.kept_property import kept_property


@attrs.frozen(eq=False, slots=False)
class Counted:
    """Somebody with something that is reckoned at the first look."""

    start: int
    looks: list[int]

    @kept_property
    def double(self) -> int:
        """Return twice the start, and note that it was asked for."""
        self.looks.append(self.start)
        return 2 * self.start


def test_a_value_is_reckoned_once_for_each_owner() -> None:
    """The second look calls nothing; another owner has a value of its own."""
    looks: list[int] = []
    one, other = Counted(2, looks), Counted(3, looks)
    assert (one.double, one.double, other.double, one.double) == (4, 4, 6, 4)
    assert looks == [2, 3]


def test_what_fails_is_reckoned_again() -> None:
    """An error is kept nowhere."""
    found = Counted(2, [])
    object.__setattr__(found, "start", None)
    try:
        _ = found.double
    except TypeError:
        object.__setattr__(found, "start", 5)
    assert found.double == 10


def test_the_class_has_it_with_its_own_words() -> None:
    """Asked of the class it is itself, with the docstring of what it calls."""
    assert isinstance(Counted.double, kept_property)
    assert Counted.double.__doc__ == "Return twice the start, and note that it was asked for."
