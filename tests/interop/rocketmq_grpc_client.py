"""
The official client of RocketMQ 5, PyPI's `rocketmq-python-client`, which speaks gRPC.

To be run as ``python rocketmq_grpc_client.py ENDPOINTS``; prints sections as the Java programs do.
The topics ``normal``, ``fifo``, ``delay`` and ``transaction`` are made beforehand, and so is the
group ``in_order``, whose members consume in order.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from rocketmq import (  # type: ignore[import-not-found] # from a directory of its own
    ClientConfiguration,
    ConsumeResult,
    Credentials,
    FilterExpression,
    Message,
    MessageListener,
    Producer,
    PushConsumer,
    SimpleConsumer,
    TransactionChecker,
    TransactionResolution,
)

PATIENCE_SECONDS = 40
#: how long a proxy waits for messages, the least that it allows
AWAIT_SECONDS = 5
#: 3 by itself: machines may be busy
REQUEST_SECONDS_MAX = 30


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def made(topic: str, body: str, **about: Any) -> Any:
    """Return a message."""
    message = Message()
    message.topic, message.body = topic, body.encode()
    message.keys, message.tag = f"key-{body}", about.pop("tag", "t")
    for name, value in about.items():
        setattr(message, name, value)
    message.add_property("color", "blue")
    return message


def shown(message: Any) -> str:
    """Return what is the same each time."""
    return (
        f"{message.topic} {message.body.decode()} {message.tag} {sorted(message.keys)} "
        f"{dict(sorted(message.properties.items()))} group={message.message_group} "
        f"attempt={message.delivery_attempt}"
    )


def started(client: Any) -> Any:
    """Start a client; its settings are on their way for a moment."""
    client.startup()
    time.sleep(1)
    return client


def received(consumer: Any, count: int) -> list[Any]:
    """Receive so many messages, as they come."""
    found: list[Any] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(found) < count and time.monotonic() < deadline:
        found += consumer.receive(16, 15) or []
    return found


def consumer_of(configuration: Any, topic: str, group: str) -> Any:
    """Return a consumer of a group that is new: it has seen what was there before."""
    subscription = {topic: FilterExpression()}
    consumer = started(SimpleConsumer(configuration, group, subscription, AWAIT_SECONDS))
    for message in consumer.receive(32, 15) or []:
        consumer.ack(message)
    return consumer


def send_and_receive(configuration: Any, producer: Any) -> None:
    """Messages are received, acknowledged, and come again where they are not."""
    say("== sent")
    consumer = consumer_of(configuration, "normal", "py_readers")
    for body in ("a", "b"):
        receipt = producer.send(made("normal", body))
        say(f"{len(receipt.message_id)} letters")
    say("== received")
    messages = received(consumer, 2)
    for message in sorted(messages, key=shown):
        say(shown(message))
    for message in messages:
        if message.body == b"a":
            consumer.ack(message)
        else:
            consumer.change_invisible_duration(message, 10)
    for message in received(consumer, 1):
        say(f"again: {shown(message)}")
        consumer.ack(message)
    consumer.shutdown()


class Listener(MessageListener):  # type: ignore[misc] # the client carries no types
    """Keeps what comes; fails once at some bodies."""

    def __init__(self, *failing: bytes) -> None:
        self.failing = set(failing)
        self.seen: list[str] = []
        self._lock = threading.Lock()

    def consume(self, message: Any) -> Any:
        """Take one message."""
        with self._lock:
            fails = message.body in self.failing
            self.failing.discard(message.body)
            self.seen.append(f"{shown(message)}{' failed' if fails else ''}")
        return ConsumeResult.FAILURE if fails else ConsumeResult.SUCCESS

    def wait(self, count: int) -> list[str]:
        """Return so many, or those that have come in the time."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(self.seen) < count and time.monotonic() < deadline:
            time.sleep(0.05)
        return list(self.seen)


def push(configuration: Any, producer: Any) -> None:
    """A listener is called for each message, and again for one that it has failed at."""
    say("== pushed")
    listener = Listener(b"bad")
    consumer_of(configuration, "normal", "py_pushed").shutdown()
    subscription = {"normal": FilterExpression("wanted")}
    consumer = started(PushConsumer(configuration, "py_pushed", listener, subscription))
    for body, tag in (("good", "wanted"), ("other", "unwanted"), ("bad", "wanted")):
        producer.send(made("normal", body, tag=tag))
    for line in sorted(listener.wait(3)):
        say(line)
    consumer.shutdown()


def in_order(configuration: Any, producer: Any) -> None:
    """A group's messages come one after the other, also where one fails at first."""
    say("== in order")
    listener = Listener(b"2")
    consumer_of(configuration, "fifo", "in_order").shutdown()
    subscription = {"fifo": FilterExpression()}
    consumer = started(PushConsumer(configuration, "in_order", listener, subscription))
    for number in range(4):
        producer.send(made("fifo", str(number), message_group="g"))
    for line in listener.wait(5):
        say(line)
    consumer.shutdown()


def later(configuration: Any, producer: Any) -> None:
    """A message comes when it is due; one that is recalled does not."""
    say("== later")
    consumer = consumer_of(configuration, "delay", "py_later")
    due = int(time.time()) + 4
    producer.send(made("delay", "due", delivery_timestamp=due))
    receipt = producer.send(made("delay", "recalled", delivery_timestamp=due))
    say(f"recalled: {producer.recall_message('delay', receipt.recall_handle) is not None}")
    for message in received(consumer, 1):
        say(f"{shown(message)} in time: {time.time() >= due}")
        consumer.ack(message)
    consumer.shutdown()


class Checker(TransactionChecker):  # type: ignore[misc] # the client carries no types
    """Commits what nobody ended."""

    def check(self, message: Any) -> Any:
        """Say how it ends."""
        del message
        return TransactionResolution.COMMIT


def transactions(configuration: Any) -> None:
    """Only what is committed is seen."""
    say("== transactions")
    producer = started(Producer(configuration, ("transaction",), checker=Checker()))
    consumer = consumer_of(configuration, "transaction", "py_transactions")
    for body in ("committed", "rolled back"):
        transaction = producer.begin_transaction()
        producer.send(made("transaction", body), transaction)
        if body == "committed":
            transaction.commit()
        else:
            transaction.rollback()
    for message in received(consumer, 1):
        say(message.body.decode())
        consumer.ack(message)
    consumer.shutdown()
    producer.shutdown()


def refused(producer: Any) -> None:
    """What cannot be sent is told by name."""
    say("== refused")
    cases = {
        "no group": made("fifo", "x"),
        "no topic": made("none", "x"),
    }
    for name, message in cases.items():
        try:
            producer.send(message)
            say(f"!! {name} was sent")
        except Exception as error:  # noqa: BLE001 - whatever the client makes of it
            say(f"{name}: {type(error).__name__}")


def main(endpoints: str) -> None:
    """Run everything."""
    configuration = ClientConfiguration(
        endpoints, Credentials(), request_timeout=REQUEST_SECONDS_MAX
    )
    producer = started(Producer(configuration, ("normal", "fifo", "delay")))
    send_and_receive(configuration, producer)
    push(configuration, producer)
    in_order(configuration, producer)
    later(configuration, producer)
    transactions(configuration)
    refused(producer)
    producer.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
