"""The official Java client and mqadmin with users, at one broker with access control and TLS."""

from __future__ import annotations

import re
import socket
import ssl
from pathlib import Path

from logstore.tools.dev.rocketmq_jars import compiled, java
from tests.interop.rocketmq_access_session import ROOT
from tests.interop.rocketmq_programs import (
    HERE,
    JAVA_SOURCES,
    Broker,
    Sections,
    admin_session,
    run_program,
)

SOURCES = [*JAVA_SOURCES, HERE / "rocketmq_java_5" / "Secured.java"]


def credentials_file(home: Path, user: tuple[str, str]) -> None:
    """Let mqadmin sign as that user."""
    conf = home / "mqadmin-5" / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    (conf / "tools.yml").write_text(f"accessKey: {user[0]}\nsecretKey: {user[1]}\n")


def make_users(broker: Broker, home: Path) -> Sections:
    """Have mqadmin make what the Java client needs, and look at it; return what it printed."""
    credentials_file(home, ROOT)
    at, cluster = ("-b", broker.broker_address), ("-n", broker.bootstrap, "-c", "DefaultCluster")
    alice = ("-s", "User:alice")
    commands = (
        ("updateTopic", "-n", broker.bootstrap, *at, "-t", "orders", "-r", "2", "-w", "2"),
        ("createUser", *at, "-u", "alice", "-p", "alice-pw"),
        ("createUser", *at, "-u", "writer", "-p", "pw", "-t", "Normal"),
        ("createUser", *cluster, "-u", "reader", "-p", "pw"),
        ("createUser", *at, "-u", "admin", "-p", "admin-pw", "-t", "Super"),
        ("createUser", *at, "-u", "alice", "-p", "again"),
        ("updateUser", *at, "-u", "alice", "-p", "alice-2"),
        ("updateUser", *at, "-u", "alice", "-s", "disable"),
        ("updateUser", *at, "-u", "nobody", "-p", "x"),
        ("getUser", *at, "-u", "alice"),
        ("getUser", *at, "-u", "nobody"),
        ("listUser", *at),
        ("listUser", *at, "-f", "r"),
        ("createAcl", *at, *alice, "-r", "Topic:a,Topic:b*", "-a", "Pub,Sub", "-d", "Allow"),
        ("createAcl", *at, *alice, "-r", "Group:*", "-a", "Sub", "-i", "10.0.0.0/8,127.0.0.1",
         "-d", "Deny"),
        ("createAcl", *at, "-s", "User:writer", "-r", "Topic:orders", "-a", "Pub", "-d", "Allow"),
        ("createAcl", *at, "-s", "User:reader", "-r", "Topic:orders,Group:readers", "-a", "Sub,Get",
         "-d", "Allow"),
        ("createAcl", *at, *alice, "-r", "Topic:a", "-a", "Fly", "-d", "Allow"),
        ("createAcl", *at, "-s", "User:nobody", "-r", "Topic:a", "-a", "Pub", "-d", "Allow"),
        ("updateAcl", *at, *alice, "-r", "Topic:a", "-a", "Create", "-d", "Allow"),
        ("getAcl", *at, *alice),
        ("getAcl", *at, "-s", "User:admin"),
        ("listAcl", *at),
        ("listAcl", *at, "-s", "writer"),
        ("listAcl", *at, "-r", "Group"),
        ("deleteAcl", *at, *alice, "-r", "Topic:a"),
        ("listAcl", *at, "-s", "alice"),
        ("deleteAcl", *at, *alice),
        ("deleteAcl", *at, *alice),
        ("deleteUser", *at, "-u", "alice"),
        ("listUser", *at, "-f", "alice"),
    )  # fmt: skip
    return _masked(admin_session("5", home, *commands), broker)


def use_mqadmin_as(user: tuple[str, str], broker: Broker, home: Path) -> Sections:
    """Have mqadmin do something in the name of a user."""
    credentials_file(home, user)
    at = ("-b", broker.broker_address)
    commands = (
        ("updateTopic", "-n", broker.bootstrap, *at, "-t", "more", "-r", "1", "-w", "1"),
        ("createUser", *at, "-u", "x", "-p", "x"),
        ("listUser", *at),
    )
    return _masked(admin_session("5", home, *commands), broker)


def _masked(found: Sections, broker: Broker) -> Sections:
    """Return what was printed without addresses and without Java's lines."""
    return {
        name: [
            re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", line.replace(broker.broker_address, "BROKER"))
            for line in lines
            if not line.lstrip().startswith(("at ", "... "))
        ]
        for name, lines in found.items()
    }


def java_client(broker: Broker, home: Path) -> Sections:
    """Run the program of the Java client."""
    command = java(
        "5", "Secured", broker.bootstrap,
        classes=compiled("5", SOURCES), home=home / "java",
    )  # fmt: skip
    return run_program(command)


def first_bytes(address: str) -> list[str]:
    """Return what becomes of peers who begin with TLS, and with neither that nor a frame."""
    host, _, port = address.rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    found: list[str] = []
    with (
        socket.create_connection((host, int(port)), 20) as plain,
        context.wrap_socket(plain) as secure,
    ):
        found.append(f"{secure.version()}")
    with socket.create_connection((host, int(port)), 20) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        found.append(f"HTTP: {plain.recv(1000)!r}")
    return found
