"""The key-value table: all that a name server keeps on disk."""

from __future__ import annotations

import json

import pytest

from logstore.compat.rocketmq.name_server.kv_config import KvConfig, KvConfigError
from logstore.host import read_file, write_file
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.rocketmq.name_server.conversation import KV_PATH, Conversation


def put(conversation: Conversation, key: str, value: str, namespace: str = "n") -> int:
    """Set a value; return the code of the answer."""
    fields = {"namespace": namespace, "key": key, "value": value}
    return conversation.ask(100, fields).code


def test_values_by_namespace_and_key() -> None:
    """Put, read, listed and deleted again; whatever is not there is said to be so."""
    conversation = Conversation()
    assert put(conversation, "k", "v") == 0
    assert conversation.ask(101, {"namespace": "n", "key": "k"}).fields == {"value": "v"}
    assert conversation.ask(219, {"namespace": "n"}).body == b'{"table":{"k":"v"}}'
    answer = conversation.ask(101, {"namespace": "n", "key": "x"})
    assert (answer.code, answer.fields) == (22, {})
    assert answer.remark == "No config item, Namespace: n Key: x"
    answer = conversation.ask(219, {"namespace": "x"})
    assert (answer.code, answer.remark) == (22, "No config item, Namespace: x")
    for _ in range(2):
        assert conversation.ask(102, {"namespace": "n", "key": "k"}).code == 0
    assert conversation.ask(101, {"namespace": "n", "key": "k"}).code == 22
    assert conversation.ask(219, {"namespace": "n"}).body == b'{"table":{}}'


@pytest.mark.parametrize("fields", [{"namespace": "n"}, {"key": "k"}])
def test_half_a_name(fields: dict[str, str]) -> None:
    """Is refused in Java's words."""
    answer = Conversation().ask(100, fields)
    assert (answer.code, answer.remark) == (1, "namespace or key is null")


def test_the_table_outlives_the_process() -> None:
    """Also if the power fails right after the answer."""
    host = SimulatedHost()
    host.fs.make_directory("/data")
    host.fs.sync_directory("/")
    conversation = Conversation(host=host)
    put(conversation, "k", "1")
    put(conversation, "k", "2")
    host.power_loss()
    again = Conversation(host=host)
    assert again.ask(101, {"namespace": "n", "key": "k"}).fields == {"value": "2"}


def test_the_file_is_that_of_java() -> None:
    """``configTable`` by namespace; the content before stands in the backup."""
    conversation = Conversation()
    put(conversation, "k", "1")
    put(conversation, "k", "2")
    fs = conversation.host.fs
    assert json.loads(read_file(fs, KV_PATH)) == {"configTable": {"n": {"k": "2"}}}
    assert json.loads(read_file(fs, f"{KV_PATH}.bak")) == {"configTable": {"n": {"k": "1"}}}


def test_nothing_is_written_for_nothing() -> None:
    """No file before the first value."""
    conversation = Conversation()
    conversation.ask(102, {"namespace": "n", "key": "k"})
    assert not conversation.host.fs.exists(KV_PATH)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"configTable":[1]}'])
def test_a_file_that_is_damaged(content: bytes) -> None:
    """Keeps the name server from starting, which would lose it; the text names it."""
    host = SimulatedHost()
    host.fs.make_directory(KV_PATH.rpartition("/")[0])
    write_file(host.fs, KV_PATH, content)
    with pytest.raises(KvConfigError, match=f"{KV_PATH}: is no key-value table"):
        KvConfig(host, KV_PATH)
    assert read_file(host.fs, KV_PATH) == content
