"""
The main job in ten seconds: a broker, a real client, the files it left, and what they can tell.

Everything shown is done for real, by the commands that are shown; the data stays in ``.dev/demo``
(or where ``--data`` says) to be looked into afterwards.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import click
import kafka
from kafka.structs import OffsetAndMetadata, TopicPartition
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from logstore.tools.dev.demo_rocketmq import show_rocketmq

ROOT = Path(__file__).resolve().parents[2]
TOPIC = "orders"
GROUP = "billing"
ORDERS = 6_000
READ_FIRST = 100
#: One order a second from this moment on.
OPENING_MS = 1_714_550_400_000  # 2024-05-01T08:00:00Z
LUNCH = "2024-05-01T09:00:00Z"
FRUITS = ("apples", "pears", "plums", "quinces", "medlars")
#: Not shown: one partition for group offsets in place of fifty, and no wait of three seconds for
#: more members of a new group.
QUIETER = (
    *("--set", "offsets.topic.num.partitions=1"),
    *("--set", "group.initial.rebalance.delay.ms=0"),
)
CLIENT: Any = kafka  # kafka-python carries no types
CLI = (sys.executable, "-m", "logstore.tools.cli")


@attrs.frozen
class Tour:
    """What the steps share: where to print, and where the data is."""

    console: Console
    data: Path

    def say(self, text: str) -> None:
        """Explain, in a paragraph."""
        self.console.print(f"\n{text}")

    def show(self, line: str) -> None:
        """Show a line of something, as it is."""
        self.console.print(f"  {line}", style="dim", markup=False, highlight=False, soft_wrap=True)

    def show_command(self, *arguments: str) -> None:
        """Show a command as one would type it."""
        command = f"[bold green]$[/] [bold]logstore {' '.join(arguments)}[/]"
        self.console.print(command, highlight=False, soft_wrap=True)

    def run(self, *arguments: str, status: int = 0) -> None:
        """Show a command and what it prints; it must exit with `status`."""
        self.show_command(*arguments)
        done = subprocess.run([*CLI, *arguments], text=True, stdout=subprocess.PIPE, check=False)
        for line in done.stdout.splitlines():
            self.show(line)
        if done.returncode != status:
            raise click.ClickException(f"exit status {done.returncode}, expected {status}")

    @contextmanager
    def broker(self) -> Generator[str]:
        """Run a Kafka broker for the time of the block; give its bootstrap address."""
        with self.serving(("--data", str(self.data)), QUIETER) as bootstrap:
            yield bootstrap

    @contextmanager
    def serving(self, shown: tuple[str, ...], quieter: tuple[str, ...]) -> Generator[str]:
        """Run `logstore serve` for the time of the block; give what clients are to be told."""
        command = ("serve", *shown, "--port", "0")
        self.show_command(*command)
        began = time.monotonic()
        process = subprocess.Popen(
            [*CLI, *command, "--json", *quieter], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line:
                raise click.ClickException("the broker did not start; its reason stands above")
            bootstrap = str(json.loads(line)["bootstrap"])
            waited_ms = (time.monotonic() - began) * 1000
            self.show(f"it answers at {bootstrap} after {waited_ms:.0f} ms")
            yield bootstrap
            process.terminate()
            if process.wait(20):
                raise click.ClickException("the broker did not stop clean")
        finally:
            process.kill()  # where something went wrong above
            process.stdout.close()


def order(number: int) -> tuple[bytes, bytes]:
    """Return the key and the value of an order."""
    customer = f"customer-{number * 7919 % 500:03}"
    what = f"{number % 9 + 1} kg of {FRUITS[number % len(FRUITS)]}"
    note = "; ".join(["leave it at the door"] * (6 + number % 7))
    return customer.encode(), f"order {number}: {what} for {customer} ({note})".encode()


def produce(tour: Tour, bootstrap: str) -> None:
    """Create the topic and write all orders to it."""
    admin = CLIENT.KafkaAdminClient(bootstrap_servers=bootstrap)
    configs = {"segment.bytes": str(1 << 20)}
    admin.create_topics({TOPIC: {"num_partitions": 1, "configs": configs}})
    admin.close()
    began = time.monotonic()
    producer = CLIENT.KafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=5)
    for number in range(ORDERS):
        key, value = order(number)
        producer.send(TOPIC, value, key, timestamp_ms=OPENING_MS + number * 1000)
    producer.flush()
    producer.close()
    seconds = time.monotonic() - began
    tour.say(
        f"[cyan]kafka-python[/] created the topic [bold]{TOPIC}[/] and sent {ORDERS:,} orders with "
        f"acks=all in {seconds:.1f} s, one order for every second since 08:00."
    )


def consume(bootstrap: str, count: int) -> list[Any]:
    """Read `count` orders as a member of the group, commit, and leave."""
    consumer = CLIENT.KafkaConsumer(
        TOPIC,
        bootstrap_servers=bootstrap,
        group_id=GROUP,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        metadata_max_age_ms=1000,
        max_poll_records=count,
    )
    try:
        found: list[Any] = []
        while len(found) < count:
            for records in consumer.poll(timeout_ms=1000).values():
                found += records
        end = {TopicPartition(TOPIC, 0): OffsetAndMetadata(found[-1].offset + 1, "", -1)}
        consumer.commit(end)
        return found
    finally:
        consumer.close()


def show_files(tour: Tour) -> None:
    """Show what stands on disk."""
    tour.say(
        "The broker has stopped. What it left is a Kafka log directory, byte for byte: a real "
        "Kafka would serve it, and Kafka's own DumpLogSegments reads it."
    )
    tour.run("ls", str(tour.data))
    for path in sorted((tour.data / f"{TOPIC}-0").iterdir()):
        tour.show(f"{path.stat().st_size:>9,}  {TOPIC}-0/{path.name}")


def ask_index(tour: Tour) -> None:
    """Ask where an offset and a time are."""
    where = (str(tour.data), "--topic", TOPIC, "--partition", "0")
    tour.say(
        "Where is offset 4711? The sparse index says where to begin, a short walk does the rest."
    )
    tour.run("query", *where, "--offset", "4711")
    tour.say("And which order was the first after nine o'clock?")
    tour.run("query", *where, "--time", LUNCH)


def damage_index(tour: Tour) -> None:
    """Turn a bit in an index, let `verify` find it and `reindex` mend it."""
    partition = tour.data / f"{TOPIC}-0"
    path = min(partition.glob("*.index"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x40
    path.write_bytes(data)
    tour.say(f"Now one bit of {path.name} is turned. Which index lies, and what follows from it?")
    tour.run("verify", str(partition), status=1)
    tour.say("Indexes are derived from the log and can be made anew from it:")
    tour.run("reindex", str(partition))
    tour.run("verify", str(partition))


def show_conversion(tour: Tour) -> None:
    """Make a RocketMQ store of the directory and ask it in SQL, where Spark is there."""
    lacking = lacking_for_spark()
    if lacking:
        tour.say(f"Conversion to RocketMQ's layout and SQL are left out: {lacking}")
        return
    from logstore.compat.spark.session import quiet_session

    store = tour.data.with_name(f"{tour.data.name}-converted")
    for path in (store, store.with_name(f"{store.name}.converting")):
        shutil.rmtree(path, ignore_errors=True)
    tour.say(
        "The same records as RocketMQ keeps them; of larger directories a Spark job makes them, "
        "without --master none:"
    )
    tour.run("convert", str(tour.data), str(store), "--to", "rocketmq", "--master", "none")
    query = (
        "select keys, count(*) as orders from messages group by keys order by orders desc, keys "
        "limit 3"
    )
    tour.say(f"And one question in SQL to that store: [bold]{query}[/]")
    with quiet_session() as spark:
        spark.read.format("logstore").option("columns", "keys").load(
            str(store)
        ).createOrReplaceTempView("messages")
        for row in spark.sql(query).collect():
            tour.show(f"{row['keys']}  {row['orders']}")


def lacking_for_spark() -> str:
    """Return what is missing for a Spark job, in one line; nothing if all is there."""
    for module in ("pyspark", "pyarrow", "numba"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is missing (pip install 'logstore-segments[spark,java]')"
    from logstore.compat.spark.session import JavaMissingError, ensure_java

    try:
        ensure_java()
    except JavaMissingError as error:
        return str(error)
    return ""


def show_tour(tour: Tour) -> None:
    """Walk through all of it."""
    tour.console.print(Panel.fit("[bold]logstore[/]: Kafka's log on disk, served without a JVM"))
    tour.say("A broker, on a free port:")
    with tour.broker() as bootstrap:
        produce(tour, bootstrap)
        first = consume(bootstrap, READ_FIRST)
        tour.say(
            f"A consumer of the group [bold]{GROUP}[/] read {len(first)} of them, up to offset "
            f"{first[-1].offset}, committed, and left:"
        )
        tour.show(f"{first[0].value.decode()[:70]} ...")
    show_files(tour)
    ask_index(tour)
    tour.say("The same directory, served again; the group goes on where it stopped:")
    with tour.broker() as bootstrap:
        again = consume(bootstrap, 1)
        tour.show(f"it was given offset {again[0].offset}")
    damage_index(tour)
    show_conversion(tour)
    show_rocketmq(tour, tour.data.parent / f"{tour.data.name}-rocketmq")


def show_next_steps(tour: Tour, seconds: float) -> None:
    """Say what to try."""
    steps = Table.grid(padding=(0, 3))
    data = tour.data
    steps.add_row(f"logstore serve --data {data} --port 9092", "for your own client")
    index = sorted((data / f"{TOPIC}-0").glob("*.timeindex"))[-1]
    steps.add_row(f"logstore dump {index}", "what an index holds")
    steps.add_row(
        f"logstore query {data} --topic {TOPIC} --partition 0 --offset 9999", "past the end"
    )
    steps.add_row("def test_mine(kafka_broker): ...", "in your own tests, with pytest")
    steps.add_row("logstore fault --help", "and make the broker fail")
    steps.add_row("./dev test", "and then CONTRIBUTING.md")
    title = f"That took {seconds:.1f} s. What to try next"
    tour.console.print(Panel(steps, title=title, expand=False))
    tour.console.print("In a checkout put [bold]./dev run[/] in front of logstore.")


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    default=ROOT / ".dev" / "demo",
    help="Where the demo's data goes; what stood there is removed.  [default: .dev/demo]",
)
def main(data: Path) -> None:
    """Show a broker, a real client, the files, and the index at work."""
    logging.disable(logging.CRITICAL)  # kafka-python tells of every connection it closes
    if data.is_relative_to(Path.cwd()):
        data = data.relative_to(Path.cwd())
    shutil.rmtree(data, ignore_errors=True)
    tour = Tour(Console(), data)
    began = time.monotonic()
    show_tour(tour)
    show_next_steps(tour, time.monotonic() - began)


if __name__ == "__main__":
    main()
