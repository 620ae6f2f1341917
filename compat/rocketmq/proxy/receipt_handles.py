"""
What a consumer shows to acknowledge a message: the handle of its pop, and its physical offset.

Nine words with a space between; the first eight are those of
:mod:`logstore.compat.rocketmq.pop.handles`. Source: ``ReceiptHandle``.
"""

from __future__ import annotations

import re

import attrs

from logstore.compat.rocketmq.pop.retry_topics import topic_of_kind
from logstore.compat.rocketmq.proxy.codes import Code
from logstore.compat.rocketmq.proxy.failures import ProxyError

_SEPARATOR = " "
_WORD_COUNT_MIN = 8
#: which words are numbers, and how large Java's may be there
_NUMBERS = ((0, 64), (1, 64), (2, 64), (3, 32), (6, 32), (7, 64))
#: so many digits fit into a number of so many bits, whatever they are
_DIGITS_MIN = {32: 9, 64: 18}
_NUMBER = re.compile("[+-]?[0-9]+")


@attrs.frozen
class ReceiptHandle:
    """A handle that was taken apart; `text` is all of it."""

    text: str
    start_offset: str
    retrieved_ms: int
    invisible_ms: int
    revive_queue_id: str
    kind: str
    broker_name: str
    queue_id: str
    queue_offset: str
    physical_offset: int

    @classmethod
    def parse(cls, text: str) -> ReceiptHandle:
        """Read a handle. Raises ProxyError."""
        words = text.split(_SEPARATOR)
        while text and words and not words[-1]:  # as Java splits
            words.pop()
        if len(words) < _WORD_COUNT_MIN:
            flaw = f"Parse failed, dataList size {len(words)}"
            raise ProxyError(Code.INTERNAL_SERVER_ERROR, flaw)
        _, retrieved_ms, invisible_ms, *_ = [
            _number(words[index], bits) for index, bits in _NUMBERS
        ]
        physical_offset = _number(words[8], 64) if len(words) > _WORD_COUNT_MIN else -1
        return cls(text, words[0], retrieved_ms, invisible_ms, words[3], words[4], words[5],
                   words[6], words[7], physical_offset)  # fmt: skip

    def require_valid(self, now_ms: int) -> None:
        """Raise ProxyError if the message may have been given to somebody else already."""
        if self.visible_ms <= now_ms:
            raise ProxyError(Code.INVALID_RECEIPT_HANDLE, "receipt handle is expired")

    @property
    def visible_ms(self) -> int:
        """When the message is to be seen again."""
        return self.retrieved_ms + self.invisible_ms

    def stored_topic(self, topic: str, group: str) -> str:
        """Return where the message is: among those of `topic`, or of the group's that came back."""
        try:
            return topic_of_kind(topic, group, self.kind)
        except ValueError:
            return topic

    def fields(self, topic: str, group: str, lite_topic: str = "") -> dict[str, str]:
        """Return what acknowledgements and changes of the time say of the message."""
        about = {"liteTopic": lite_topic} if lite_topic else {}
        return about | {
            "consumerGroup": group,
            "topic": self.stored_topic(topic, group),
            "queueId": self.queue_id,
            "extraInfo": self.text,
            "offset": self.queue_offset,
        }

    def renewed(self, answer: dict[str, str]) -> str:
        """Return the handle that holds after the time was changed."""
        words = (
            self.start_offset, answer["popTime"], answer["invisibleTime"], answer["reviveQid"],
            self.kind, self.broker_name, self.queue_id, self.queue_offset,
            str(self.physical_offset),
        )  # fmt: skip
        return _SEPARATOR.join(words)


def _number(word: str, bits: int) -> int:
    """Return a number of Java's. Raises ProxyError: it is none, or has more bits."""
    if len(word) <= _DIGITS_MIN[bits] and word.isdecimal() and word.isascii():
        return int(word)
    if _NUMBER.fullmatch(word) is None or not -(1 << bits - 1) <= int(word) < 1 << bits - 1:
        raise ProxyError(Code.INTERNAL_SERVER_ERROR, f'For input string: "{word}"')
    return int(word)
