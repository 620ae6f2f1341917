"""
The C++ client through PyPI's `rocketmq`, as a bridge's other side.

python rocketmq_bridge_client.py NAME_SERVER send TOPIC COUNT
python rocketmq_bridge_client.py NAME_SERVER pull TOPIC
python rocketmq_bridge_client.py NAME_SERVER push TOPIC GROUP EXPRESSION COUNT

Prints a line a message: queue, offset, body in hex, tags, keys, property "color".
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from rocketmq.client import (  # type: ignore[import-not-found] # from a directory of its own
    Message,
    Producer,
    PullConsumer,
    PushConsumer,
)

PATIENCE_SECONDS = 30


def say(line: str) -> None:
    """Print a line at once: the library may end the process as it likes."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def shown(message: Any) -> str:
    """Return a message as a line."""
    fields = (message.tags, message.keys, message.get_property("color"))
    texts = " ".join(field.decode() for field in fields)
    return f"{message.queue_id} {message.queue_offset} {message.body.hex()} {texts}"


def send(name_server: str, topic: str, count: str) -> None:
    """Send so many messages, one after the other."""
    producer = Producer("bridge_producers")
    producer.set_namesrv_addr(name_server)
    producer.start()
    for number in range(int(count)):
        message = Message(topic)
        message.set_keys(f"key-{number}")
        message.set_tags("even" if number % 2 == 0 else "odd")
        message.set_property("color", "blue")
        message.set_body(f"body {number}" * (number + 1))
        producer.send_sync(message)
    producer.shutdown()


def pull(name_server: str, topic: str) -> None:
    """Pull the whole topic."""
    puller = PullConsumer("bridge_pullers")
    puller.set_namesrv_addr(name_server)
    puller.start()
    for message in puller.pull(topic):
        sys.stdout.write(f"{shown(message)}\n")
        sys.stdout.flush()
    puller.shutdown()


def push(name_server: str, topic: str, group: str, expression: str, count: str) -> None:
    """Consume until so many messages have come, and a while longer."""
    found: list[str] = []
    consumer = PushConsumer(group)
    consumer.set_namesrv_addr(name_server)
    consumer.subscribe(topic, lambda message: found.append(shown(message)), expression)
    consumer.start()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(found) < int(count) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.5)  # more than were asked for would be wrong
    consumer.shutdown()  # commits
    sys.stdout.write("\n".join(found) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    programs: dict[str, Callable[..., None]] = {"send": send, "pull": pull, "push": push}
    programs[sys.argv[2]](sys.argv[1], *sys.argv[3:])
    os._exit(0)  # the library's own threads may crash while the interpreter ends
