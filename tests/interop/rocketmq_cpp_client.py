"""
The C++ client through PyPI's `rocketmq`: python rocketmq_cpp_client.py NAME_SERVER TOPIC.

Prints sections as the Java programs do. The topic, with one queue, is made beforehand.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from rocketmq.client import (  # type: ignore[import-not-found] # from a directory of its own
    Message,
    Producer,
    PullConsumer,
    PushConsumer,
)

PATIENCE_SECONDS = 40
SHORT_BODY = 80
#: what `produce` leaves behind, the batch left out
MESSAGES = 6 + 3


def say(line: str) -> None:
    """Print a line at once: the library may end the process as it likes."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def made(topic: str, body: str, tags: str = "cpp") -> Any:
    """Return a message with a key and a property."""
    message = Message(topic)
    message.set_keys("key_cpp")
    message.set_tags(tags)
    message.set_property("color", "blue")
    message.set_body(body)
    return message


def wait_for(what: str, question: Callable[[], bool]) -> None:
    """Return once the answer is yes; say so if it never is."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not question():
        if time.monotonic() > deadline:
            say(f"!! {what}: not in time")
            return
        time.sleep(0.01)


def shown(message: Any) -> str:
    """Return what a second run has again."""
    body = message.body
    text = repr(body) if len(body) < SHORT_BODY else f"{len(body)} bytes"
    color = message.get_property("color")
    return f"{text} {message.tags!r} {message.keys!r} {color!r} {message.reconsume_times}"


def produce(name_server: str, topic: str) -> None:
    """Send synchronously, one way, ordered, compressed, delayed, and a batch."""
    producer = Producer("cpp_producers")
    producer.set_namesrv_addr(name_server)
    producer.start()
    for number in range(3):
        sent = producer.send_sync(made(topic, f"sync {number}"))
        say(f"sync: {sent.status!r} {sent.offset}")
    sent = producer.send_orderly(made(topic, "ordered", "other"), 7)
    say(f"ordered: {sent.status!r} {sent.offset}")
    sent = producer.send_sync(made(topic, "long " * 2000))
    say(f"long: {sent.status!r} {sent.offset}")
    producer.send_oneway(made(topic, "one way", "other"))
    delayed = made(topic, "delayed")
    delayed.set_delay_time_level(1)
    say(f"delayed: {producer.send_sync(delayed).status!r}")
    time.sleep(1.5)
    sent = producer.send_batch([made(topic, "one of two"), made(topic, "two of two")])
    say(f"batch: {sent.status!r}")
    say(f"last: {producer.send_sync(made(topic, 'last', 'other')).status!r}")
    producer.shutdown()


def push(name_server: str, topic: str, group: str, expression: str, **options: Any) -> None:
    """Consume until the last message has come; say all but the batch, whose body is binary."""
    found: list[str] = []
    consumer = PushConsumer(group, **options)
    consumer.set_namesrv_addr(name_server)
    consumer.subscribe(topic, lambda message: found.append(shown(message)), expression)
    consumer.start()
    wait_for("the last message", lambda: any("last" in line for line in found))
    wait_for("all the others", lambda: len(found) >= (3 if expression == "other" else MESSAGES))
    consumer.shutdown()
    for line in sorted(set(found)):
        if "of two" not in line:
            say(line)


def pull(name_server: str, topic: str) -> None:
    """Pull the whole topic."""
    puller = PullConsumer("cpp_pullers")
    puller.set_namesrv_addr(name_server)
    puller.start()
    for message in puller.pull(topic):
        if b"of two" not in message.body:
            say(f"{message.queue_id}@{message.queue_offset} {shown(message)}")
    puller.shutdown()


def main(name_server: str, topic: str) -> None:
    """Run all sections; an exception is said, and the next one begins."""
    sections: dict[str, Callable[[], None]] = {
        "produce": partial(produce, name_server, topic),
        "push": partial(push, name_server, topic, "cpp_readers", "*"),
        "push by tag": partial(push, name_server, topic, "cpp_tag_readers", "other"),
        "push in order": partial(push, name_server, topic, "cpp_ordered", "*", orderly=True),
        "pull": partial(pull, name_server, topic),
    }
    for name, run in sections.items():
        say(f"== {name}")
        try:
            run()
        except Exception as error:  # noqa: BLE001 - what goes wrong is what the test compares
            say(f"!! {error!r}")
    os._exit(0)  # the library's own threads may crash while the interpreter ends


if __name__ == "__main__":
    main(*sys.argv[1:3])
