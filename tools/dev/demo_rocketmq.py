"""The tour's second half: the same with RocketMQ's protocol and RocketMQ's files."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from logstore.tools.dev.demo import Tour

TOPIC = "orders"
ORDERS = 500
CLIENT = "rocketmq==0.4.4"
_PROGRAM = Path(__file__).with_name("rocketmq_client.py")
#: not shown: any port for the broker, and an index of a size to look at
QUIETER = (
    *("--broker-port", "0"),
    *("--set", "maxHashSlotNum=5000"),
    *("--set", "maxIndexNum=20000"),
)


def show_rocketmq(tour: Tour, data: Path) -> None:
    """Serve a RocketMQ store, let RocketMQ's own client use it, and look at the files."""
    shutil.rmtree(data, ignore_errors=True)
    client = _client(data.parent / "rocketmq-client")
    if client is None:
        tour.say("RocketMQ's C++ client could not be had for this machine; its half is left out.")
        return
    tour.say("The other half: a RocketMQ name server and broker, in one process.")
    with tour.serving(("--layout", "rocketmq", "--data", str(data)), QUIETER) as name_server:
        began = time.monotonic()
        environment = {**os.environ, "PYTHONPATH": str(client)}
        command = [sys.executable, str(_PROGRAM), name_server, TOPIC, str(ORDERS)]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        if done.returncode != 0:
            raise click.ClickException(f"the RocketMQ client failed: {done.stderr or done.stdout}")
        seconds = time.monotonic() - began
        tour.say(
            f"RocketMQ's C++ client sent {ORDERS} orders with keys and tags, and a push consumer "
            f"got them, in {seconds:.1f} s:"
        )
        tour.show(done.stdout.strip())
    tour.say("What it left is a RocketMQ store: commit log, consume queues, index files.")
    tour.run("ls", str(data))
    tour.say("Which message has the key order-42? The index file says where to look.")
    tour.run("query", str(data), "--topic", TOPIC, "--key", "order-42")


def _client(directory: Path) -> Path | None:
    """Return where the client's package is, installed once; None where there is none to be had."""
    if (directory / "rocketmq").is_dir():
        return directory
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return None
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
    done = subprocess.run([*command, str(directory), CLIENT], capture_output=True, check=False)
    return directory if done.returncode == 0 else None
