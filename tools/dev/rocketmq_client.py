"""
The demo's RocketMQ client: ``python rocketmq_client.py NAME_SERVER TOPIC COUNT``.

It is PyPI's `rocketmq`, the C++ client; it sends COUNT orders, reads them all back and says so.
"""

from __future__ import annotations

import importlib
import sys
import threading
from typing import Any

client: Any = importlib.import_module("rocketmq.client")  # it stands in a directory of its own

PATIENCE_SECONDS = 60
FRUITS = ("apples", "pears", "plums", "quinces", "medlars")


def send(name_server: str, topic: str, count: int) -> None:
    """Send so many orders, each with a key and a tag."""
    producer = client.Producer("shop")
    producer.set_namesrv_addr(name_server)
    producer.start()
    for number in range(count):
        message = client.Message(topic)
        message.set_keys(f"order-{number}")
        message.set_tags("express" if number % 10 == 0 else "slow")
        message.set_body(f"order {number}: {number % 9 + 1} kg of {FRUITS[number % len(FRUITS)]}")
        producer.send_sync(message)
    producer.shutdown()


def receive(name_server: str, topic: str, count: int) -> list[str]:
    """Return the bodies of so many messages, as a push consumer is given them."""
    found: list[str] = []
    is_over = threading.Event()

    def listen(message: Any) -> None:
        body = message.body
        found.append(body.decode() if isinstance(body, bytes) else body)
        if len(found) >= count:
            is_over.set()

    consumer = client.PushConsumer("billing")
    consumer.set_namesrv_addr(name_server)
    consumer.subscribe(topic, listen)
    consumer.start()
    is_over.wait(PATIENCE_SECONDS)
    consumer.shutdown()
    return found


def main() -> None:
    """Send, receive, and print what came."""
    name_server, topic, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    send(name_server, topic, count)
    found = receive(name_server, topic, count)
    sys.stdout.write(f"{len(found)} of {count} came back, one of them: {min(found, default='-')}\n")
    sys.exit(0 if len(found) == count else 1)


if __name__ == "__main__":
    main()
