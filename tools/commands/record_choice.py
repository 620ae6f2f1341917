"""Which records a command is about: ``--topics``, ``--from``, ``--until``, ``--time``."""

from __future__ import annotations

import click

from logstore.tools.inspection.times import parse_time


def moment(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Return ms since the epoch for the text of an option, or None if it was not given."""
    if value is None:
        return None
    try:
        return parse_time(value)
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"{value!r} is neither ISO-8601, as 2023-11-14T22:13:20Z, nor ms since the epoch",
            ctx=ctx,
            param=param,
        ) from None


def topic_names(text: str | None) -> tuple[str, ...] | None:
    """Return the names in a list with commas, or None if none was given."""
    return tuple(name.strip() for name in text.split(",") if name.strip()) if text else None
