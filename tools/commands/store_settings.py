"""``--set key=value``: settings of a RocketMQ store that its files do not tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from logstore.segments.rocketmq.settings.java_config import ConfigError
from logstore.segments.rocketmq.settings.store_config import StoreConfig

F = TypeVar("F", bound=Callable[..., Any])


def settings_of(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """Return the settings by name; a value that is none of its key's is a usage error."""
    found: dict[str, str] = {}
    for text in values:
        key, is_given, value = text.partition("=")
        if not is_given or not key.strip():
            raise click.BadParameter(f"{text!r} is not KEY=VALUE", ctx=ctx, param=param)
        found[key.strip()] = value.strip()
    try:
        config = StoreConfig(found)
    except ConfigError as error:
        raise click.BadParameter(str(error), ctx=ctx, param=param) from None
    if config.unknown:
        names = ", ".join(sorted(config.unknown))
        raise click.BadParameter(f"{names}: no setting of a store", ctx=ctx, param=param)
    return found


def store_settings(command: F) -> F:
    """Give a command ``--set``; its parameter is `settings`."""
    return click.option(
        "--set", "settings", metavar="KEY=VALUE", multiple=True, callback=settings_of,
        help="A setting of a RocketMQ store that its files do not tell, as maxHashSlotNum=500; "
        "can be given again.",
    )(command)  # fmt: skip
