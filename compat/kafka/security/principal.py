"""
Who a client is: ``User:alice``, or ``User:ANONYMOUS`` where nobody has to say.

Kafka's KafkaPrincipal.
"""

from __future__ import annotations

from typing import NamedTuple

USER = "User"


class Principal(NamedTuple):
    """A kind of name, of which Kafka has one (`USER`), and the name."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> Principal:
        """Return who is written as text. Raises ValueError where the kind is missing."""
        kind, colon, name = text.partition(":")
        if not colon:
            raise ValueError(f"{text!r} is no principal, expected such as User:alice")
        return cls(kind, name)


ANONYMOUS = Principal(USER, "ANONYMOUS")
