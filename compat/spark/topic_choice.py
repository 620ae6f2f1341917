"""Which topics and partitions a query reads: ``subscribe``, ``subscribePattern`` or ``assign``."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import attrs

from logstore.compat.kafka.topics.names import INTERNAL_TOPICS
from logstore.compat.spark.option_values import OptionError, Options, json_object, text_of

#: a query is given one of them at most
_CHOICES = ("subscribe", "topics", "subscribePattern", "assign")


@attrs.frozen
class TopicChoice:
    """What is wanted; where nothing is chosen, all but internal topics are. `option` said so."""

    topics: frozenset[str] | None = None
    pattern: re.Pattern[str] | None = None
    assigned: frozenset[tuple[str, int]] | None = None
    option: str = "assign"

    @property
    def is_by_name(self) -> bool:
        """Whether topics are named, so that internal ones may be among them."""
        return self.topics is not None or self.assigned is not None

    def wants(self, topic: str, partition: int) -> bool:
        """Tell whether records of this partition are asked for."""
        if self.assigned is not None:
            return (topic, partition) in self.assigned
        if self.topics is not None:
            return topic in self.topics
        if self.pattern is not None:
            return topic not in INTERNAL_TOPICS and self.pattern.fullmatch(topic) is not None
        return not topic.startswith("__")

    def check(self, stored: Collection[str]) -> None:
        """
        Check that the named topics are among those of the store.

        Raises:
            OptionError: one is not.

        """
        named = self.topics or {topic for topic, _ in self.assigned or ()}
        missing = sorted(topic for topic in named if topic not in stored)
        if missing:
            raise OptionError(self.option, ",".join(missing), "is not in the store")


def topic_choice(options: Options) -> TopicChoice:
    """
    Read the options that choose.

    Raises:
        OptionError: more than one of them is given, or one chooses nothing or has no such form.

    """
    given = [name for name in _CHOICES if name.lower() in options]
    if len(given) > 1:
        raise OptionError(given[1], options[given[1].lower()], f"cannot stand beside {given[0]}")
    if not given:
        return TopicChoice()
    name = given[0]
    text = text_of(options, name) or ""
    if name == "assign":
        return TopicChoice(assigned=_assigned(text), option=name)
    if name == "subscribePattern":
        return TopicChoice(pattern=_pattern(text), option=name)
    topics = frozenset(part.strip() for part in text.split(",") if part.strip())
    if not topics:
        raise OptionError(name, text, "names no topic")
    return TopicChoice(topics, option=name)


def _pattern(text: str) -> re.Pattern[str]:
    if not text:
        raise OptionError("subscribePattern", text, "is empty")
    try:
        return re.compile(text)
    except re.error as error:
        raise OptionError("subscribePattern", text, f"is no pattern ({error})") from error


def _assigned(text: str) -> frozenset[tuple[str, int]]:
    found = json_object("assign", text)
    places: set[tuple[str, int]] = set()
    for topic, given in found.items():
        indexes: list[Any] = [None]
        if isinstance(given, list):
            indexes = given  # pyright: ignore[reportUnknownVariableType]
        if any(type(index) is not int for index in indexes):
            raise OptionError("assign", text, 'must look like {"topic": [0, 1]}')
        places.update((topic, index) for index in indexes)
    return frozenset(places)
