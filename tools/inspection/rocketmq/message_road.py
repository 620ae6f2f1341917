"""The last steps of every road: the record in the commit log, and the message in it."""

from __future__ import annotations

from typing import Any

from logstore.segments.rocketmq.messages.corrupt_message import CorruptMessageError
from logstore.segments.rocketmq.messages.message import Message, decode_message
from logstore.segments.rocketmq.messages.message_layout import BLANK_MAGIC
from logstore.tools.inspection.rendering import json_bytes, quoted
from logstore.tools.inspection.road import Explanation, Fields
from logstore.tools.inspection.rocketmq.message_facts import shown_body
from logstore.tools.inspection.rocketmq.stored_store import StoredStore
from logstore.tools.inspection.times import iso_time

_TEXT_CHARACTERS = 120
_PREFIX_BYTES = 8


def read_message(
    found: Explanation, store: StoredStore, physical_offset: int, size_bytes: int | None = None
) -> Message | None:
    """Add the step into the commit log; None, and `found` ended, where no good message stands."""
    log = store.commit_log
    file = log.file_of(physical_offset)
    if file is None:
        found.end(
            "below-start" if physical_offset < log.start else "above-end",
            f"no file of the commit log holds physical offset {physical_offset}: there are "
            f"[{log.start}, {log.end})",
        )
        return None
    position = physical_offset - file.base
    fields: Fields = {"file": file.relative, "position": position}
    found.add(
        "commit log",
        {**fields, "physicalOffset": physical_offset},
        f"{file.relative}, position {position} ({physical_offset} - {file.base})",
    )
    data = log.read(physical_offset, _PREFIX_BYTES)
    stated = int.from_bytes(data[:4], "big", signed=True)
    if data[4:] == BLANK_MAGIC:
        found.end("hole", f"a BLANK fills the rest of {file.relative}: the log goes on behind it")
        return None
    if not any(data):
        found.end("above-end", f"nothing was written at physical offset {physical_offset}")
        return None
    wanted = size_bytes or max(stated, _PREFIX_BYTES)
    try:
        message = decode_message(log.read(physical_offset, min(wanted, file.end - physical_offset)))
    except CorruptMessageError as error:
        place = f"{store.directory}/{file.relative}: position {position}"
        found.end("damaged", f"{place}: {error.reason}")
        return None
    if message.physical_offset != physical_offset:
        found.end(
            "damaged",
            f"{store.directory}/{file.relative}: position {position}: the record there says "
            f"physical offset {message.physical_offset}",
        )
        return None
    return message


def message_content(message: Message) -> dict[str, Any]:
    """Return a message for programs."""
    return {
        "topic": message.topic,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "physicalOffset": message.physical_offset,
        "size": message.size_bytes,
        "msgId": message.offset_message_id,
        "uniqKey": message.unique_key,
        "tags": message.tags,
        "keys": list(message.keys),
        "storeTimestamp": message.store_timestamp_ms,
        "storeHost": str(message.store_host),
        "bornTimestamp": message.born_timestamp_ms,
        "bornHost": str(message.born_host),
        "flag": message.flag,
        "sysFlag": message.sys_flag,
        "reconsumeTimes": message.reconsume_times,
        "preparedTransactionOffset": message.prepared_transaction_offset,
        "properties": message.properties,
        **json_bytes("body", shown_body(message)),
    }


def message_sentence(message: Message) -> str:
    """Return a message in a line."""
    named = [
        f"{name} {value}"
        for name, value in (("tags", message.tags), ("keys", " ".join(message.keys)))
        if value
    ]
    parts = [
        f"{message.topic}-{message.queue_id}@{message.queue_offset}",
        f"stored {iso_time(message.store_timestamp_ms)} ({message.store_timestamp_ms})",
        f"{message.size_bytes} bytes, CRC right",
        *named,
        f"body {quoted(shown_body(message), _TEXT_CHARACTERS)}",
    ]
    return ", ".join(parts)


def add_message(found: Explanation, message: Message) -> Explanation:
    """Add the message as the last step, and its ids as the answer."""
    found.add("message", message_content(message), message_sentence(message))
    unique = f", unique key {message.unique_key}" if message.unique_key else ""
    return found.end(
        "found",
        f"{message.topic}-{message.queue_id} queue offset {message.queue_offset}, physical offset "
        f"{message.physical_offset}, id {message.offset_message_id}{unique}",
    )
