"""What a broker for tests may be told: everything that makes no sense is refused at once."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any, cast

from logstore.errors import LogStoreError

PROTOCOLS = ("kafka", "rocketmq")
_PORT_MAX = 65535


class ArgumentError(LogStoreError, ValueError):
    """A broker for tests is asked for that there cannot be."""

    def __init__(self, name: str, value: object, reason: str) -> None:
        super().__init__(f"TestBroker({name}={value!r}): {reason}")


def directory_text(directory: object) -> str:
    """Return the path as text, "" for none. ArgumentError."""
    if directory is None:
        return ""
    given = cast("os.PathLike[str]", directory)  # or anything else
    path: object = os.fspath(given) if isinstance(directory, str | os.PathLike) else directory
    if not isinstance(path, str) or "\0" in path:
        raise ArgumentError("directory", given, "it is a path, as text or pathlib.Path")
    return path


def setting_texts(settings: object) -> dict[str, str]:
    """Return settings as their file would have them: numbers and booleans as text."""
    texts: dict[str, str] = {}
    for name, value in _mapping("settings", settings, '{"name": "value"}').items():
        if isinstance(value, bool):
            texts[name] = "true" if value else "false"
        elif isinstance(value, str | int | float):
            texts[name] = str(value)
        else:
            raise ArgumentError(
                "settings", {name: value}, "a value is text, a number, True or False"
            )
    return texts


def user_passwords(users: object) -> dict[str, str]:
    """Return who may come in, by name. ArgumentError."""
    found = _mapping("users", users, '{"name": "password"}')
    for name, password in found.items():
        if not name or not isinstance(password, str):
            shown = f"a password of type {type(password).__name__}"
            raise ArgumentError(
                "users", {name: password} if not name else {name: shown},
                "name and password are text, and the name is not empty",
            )  # fmt: skip
    return found


def _mapping(name: str, given: object, example: str) -> dict[str, Any]:
    if given is None:
        return {}
    found = cast("Mapping[Any, Any]", given)  # or anything else
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in found):
        raise ArgumentError(name, found, f"it is a dict as {example}")
    return dict(found)


def protocols_served(layout: object, protocols: object) -> tuple[str, ...]:
    """Return who is served, the layout's own clients if nothing is said. ArgumentError."""
    if layout not in PROTOCOLS:
        raise ArgumentError("layout", layout, f"it is one of {', '.join(PROTOCOLS)}")
    if protocols is None:
        return (str(layout),)
    found = cast("Collection[str]", protocols)  # or anything else
    is_several = isinstance(protocols, Collection) and not isinstance(protocols, str | bytes)
    if not is_several or not found or not set(found) <= set(PROTOCOLS):
        raise ArgumentError(
            "protocols", found, f"it is a tuple of one or both of {', '.join(PROTOCOLS)}"
        )
    return tuple(dict.fromkeys(found))


def brokers_within(layout: str, protocols: tuple[str, ...]) -> tuple[str, ...]:
    """Return whose settings count: both brokers' unless the layout's own serves alone."""
    return protocols if protocols == (layout,) else PROTOCOLS


def check_ports(protocols: tuple[str, ...], **ports: object) -> None:
    """Refuse what is no port, 0 for any free one. ArgumentError."""
    for name, port in ports.items():
        if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= _PORT_MAX:
            raise ArgumentError(name, port, f"a port is 0 (any free one) to {_PORT_MAX}")
    if ports["broker_port"] and "rocketmq" not in protocols:
        raise ArgumentError("broker_port", ports["broker_port"], "a Kafka broker has one port")


def check_kinds(
    layout: str, protocols: tuple[str, ...], nodes: object, emulate: str | None, *, has_proxy: bool
) -> None:
    """Refuse what only brokers of another kind can be. ArgumentError."""
    is_kafka = protocols == ("kafka",) == (layout,)
    if isinstance(nodes, bool) or not isinstance(nodes, int) or nodes < 1:
        raise ArgumentError("nodes", nodes, "a broker has one node or more")
    if nodes != 1 and not is_kafka:
        raise ArgumentError("nodes", nodes, "only a Kafka broker on its own layout has nodes")
    if has_proxy and "rocketmq" not in protocols:
        raise ArgumentError("proxy", has_proxy, "only RocketMQ has a proxy; add it to protocols")
    if emulate is not None and not is_kafka:
        raise ArgumentError("emulate", emulate, "only a Kafka broker on its own layout does so")


def check_secured(layout: str, protocols: tuple[str, ...], mechanisms: object) -> None:
    """Refuse users, mechanisms and TLS where they are not to be had. ArgumentError."""
    if protocols != (layout,):
        raise ArgumentError(
            "protocols", protocols, "users, mechanisms and tls are for the layout's own protocol"
        )
    if isinstance(mechanisms, str | bytes):
        raise ArgumentError("mechanisms", mechanisms, 'it is a tuple, as ("PLAIN",)')
    if mechanisms and layout != "kafka":
        raise ArgumentError(
            "mechanisms", mechanisms, "RocketMQ's clients sign; there is no other way"
        )
