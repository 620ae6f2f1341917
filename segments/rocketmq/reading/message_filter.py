"""
What a pull may ask of messages: Java's ``MessageFilter``, and the filter by tags.

A filter is asked twice. First with what the consume queue says (the tags code, and where there is
a consume queue extension its bit map): cheap, and a yes may be wrong. Then, if it
`reads_messages`, with the stored message itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from logstore.java_hash import java_hash

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["SUBSCRIBE_ALL", "ExtUnit", "MessageFilter", "TagFilter", "tags_of_expression"]

#: the expression that takes every message
SUBSCRIBE_ALL = "*"
#: what Java's ``String.trim`` takes off
_TRIMMED = "".join(map(chr, range(0x21)))


class ExtUnit(Protocol):
    """What a consume queue extension says about one message (``CqExtUnit``)."""

    @property
    def tags_code(self) -> int:
        """Hash of the tags."""
        ...

    @property
    def store_timestamp_ms(self) -> int:
        """When the message was stored."""
        ...

    @property
    def filter_bit_map(self) -> bytes | None:
        """Bits of the consumers whose expression it matched; None where none were computed."""
        ...


class MessageFilter(Protocol):
    """Java's ``MessageFilter``: by queue unit, then by message."""

    @property
    def tags_codes(self) -> frozenset[int] | None:
        """
        The only tags codes that pass, as signed 32-bit numbers.

        None: :meth:`matches_unit` must be asked.
        """
        ...

    @property
    def reads_messages(self) -> bool:
        """Tell whether :meth:`matches_message` must be asked."""
        ...

    def matches_unit(self, tags_code: int | None, ext: ExtUnit | None) -> bool:
        """
        Tell whether the message may match; `tags_code` is None where it cannot be known.

        (``isMatchedByConsumeQueue``)
        """
        ...

    def matches_message(self, record: Buffer) -> bool:
        """Tell whether the stored message matches (``isMatchedByCommitLog``)."""
        ...

    def matching_messages(
        self, data: bytes, starts: Sequence[int], ends: Sequence[int]
    ) -> Iterator[int]:
        """
        Yield the indexes of the stored messages that match, in order.

        Their physical offsets are in `starts` and `ends`; `data` is all from the first one on, with
        what stands between them. Their units say nothing that :meth:`matches_unit` could deny.
        """
        ...

    def matches_properties(self, properties_text: bytes) -> bool:
        """Tell the same of a message of which no more than the properties are at hand."""
        ...


class TagFilter:
    """
    Lets messages through whose tags hash to one of a few codes, as the broker does it.

    Different tags may share a hash: clients look at the tags themselves again.
    """

    __slots__ = ("_passes_all", "tags_codes")

    reads_messages = False

    def __init__(self, tags_codes: Iterable[int] | None) -> None:
        """Take the codes from a subscription; None lets everything through."""
        self._passes_all = tags_codes is None
        self.tags_codes: frozenset[int] | None = (
            None if tags_codes is None else frozenset(tags_codes)
        )

    @classmethod
    def of_expression(cls, expression: str) -> TagFilter:
        """Return the filter of a subscription such as ``TagA || TagB``; ``*`` takes all."""
        tags = tags_of_expression(expression)
        return cls(None if tags is None else [java_hash(tag) for tag in tags])

    def matches_unit(self, tags_code: int | None, ext: ExtUnit | None) -> bool:  # noqa: ARG002
        """Compare the lower 32 bits with the codes; what is not known passes."""
        codes = self.tags_codes
        if codes is None or tags_code is None:
            return True
        return ((tags_code + 0x80000000) & 0xFFFFFFFF) - 0x80000000 in codes

    def matches_message(self, record: Buffer) -> bool:  # noqa: ARG002
        """Let everything through: the tags code has decided."""
        return True

    def matching_messages(
        self,
        data: bytes,  # noqa: ARG002
        starts: Sequence[int],
        ends: Sequence[int],  # noqa: ARG002
    ) -> Iterator[int]:
        """Let everything through: the tags codes have decided."""
        return iter(range(len(starts)))

    def matches_properties(self, properties_text: bytes) -> bool:  # noqa: ARG002
        """Let everything through: the tags code has decided."""
        return True


def tags_of_expression(expression: str | None) -> list[str] | None:
    """
    Return the tags of a subscription's expression, None where it takes every message.

    Tags stand between ``||``; spaces around them and empty ones do not count
    (``FilterAPI.buildSubscriptionData``).

    Raises:
        ValueError: there is nothing but ``||``.

    """
    if expression is None or expression in ("", SUBSCRIBE_ALL):
        return None
    parts = expression.split("||")
    # Java's split drops empty parts at the end, and an array without parts is an error there.
    if not any(parts):
        raise ValueError("subString split error")  # as Java tells it
    return [tag for part in parts if (tag := part.strip(_TRIMMED))]
