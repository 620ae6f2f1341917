"""
How a message is found by queue offset, physical offset, time or id.

The steps are those of Java's ``getMessage``, ``lookMessageByOffset`` and
``getOffsetInQueueByTime``, taken one by one and put in words.
"""

from __future__ import annotations

from difflib import get_close_matches

from logstore.errors import MissingSegmentError
from logstore.segments.rocketmq.messages.corrupt_message import CorruptMessageError
from logstore.segments.rocketmq.messages.dispatch_request import (
    DispatchRequest,
    read_dispatch_request,
)
from logstore.segments.rocketmq.messages.message_id import parse_offset_message_id
from logstore.segments.rocketmq.queues.batch_consume_queue import BatchUnit
from logstore.segments.rocketmq.queues.consume_queue_ext import (
    ConsumeQueueExtUnit,
    is_ext_address,
)
from logstore.segments.rocketmq.settings.release import Release
from logstore.tools.inspection.road import Explanation, Fields
from logstore.tools.inspection.rocketmq.log_end import log_ends
from logstore.tools.inspection.rocketmq.message_road import (
    add_message,
    message_sentence,
    read_message,
)
from logstore.tools.inspection.rocketmq.queue_span import (
    QueueSpan,
    Unit,
    is_unit,
    queue_span,
    unit_at,
)
from logstore.tools.inspection.rocketmq.stored_store import StoredQueue, StoredStore
from logstore.tools.inspection.times import iso_time

_NAMES_SHOWN = 10


def find_queue(store: StoredStore, topic: str, queue_id: int) -> StoredQueue:
    """
    Return a queue.

    Raises:
        MissingSegmentError: there is none; says which ones there are.

    """
    queue = store.queues.get((topic, queue_id))
    if queue is not None:
        return queue
    if store.rocksdb_folder is not None:
        raise MissingSegmentError(
            f"{store.directory}/{store.rocksdb_folder}: the queues stand in RocksDB, which is not "
            "read here; ask by --key, --unique-key, --message-id or --physical-offset"
        )
    raise MissingSegmentError(
        f"{store.directory}: there is no queue {topic}-{queue_id}; {_others(store, topic)}"
    )


def _others(store: StoredStore, topic: str) -> str:
    """Say what there is instead: other queues of the topic, or topics with queues."""
    ids = [queue_id for name, queue_id in store.queues if name == topic]
    if ids:
        return f"{topic} has {'queue' if len(ids) == 1 else 'queues'} {_shown(ids)}"
    names = list(dict.fromkeys(name for name, _ in store.queues))
    nearest = get_close_matches(topic, names, 1)
    if nearest:
        return f"did you mean {nearest[0]}?"
    return f"topics with queues: {_shown(names)}" if names else "there is none at all"


def _shown(values: list[int] | list[str]) -> str:
    rest = len(values) - _NAMES_SHOWN
    return ", ".join(map(str, values[:_NAMES_SHOWN])) + (f" and {rest} more" if rest > 0 else "")


def explain_queue_offset(
    store: StoredStore, topic: str, queue_id: int, queue_offset: int
) -> Explanation:
    """Return how a pull finds a queue offset, or why there is nothing to find."""
    found = Explanation()
    queue = find_queue(store, topic, queue_id)
    span = _add_queue(found, store, queue)
    if queue_offset < span.min_queue_offset:
        return found.end(
            "below-start",
            f"the queue starts at {span.min_queue_offset}: messages below were deleted",
        )
    if queue_offset >= span.max_queue_offset:
        outcome = "at-end" if queue_offset == span.max_queue_offset else "above-end"
        return found.end(outcome, f"the queue ends at {span.max_queue_offset}")
    return _follow(found, store, queue, _number_of(queue, span, queue_offset))


def _add_queue(found: Explanation, store: StoredStore, queue: StoredQueue) -> QueueSpan:
    span = _span_in_sound_log(store, queue)
    if span is None:
        ends = list(log_ends(store.commit_log))
        log_end = max((end.physical_offset for end in ends if end.position), default=0)
        span = queue_span(queue, store.commit_log.start, log_end)
    found.add(
        "queue",
        {
            "folder": queue.relative,
            "minOffset": span.min_queue_offset,
            "maxOffset": span.max_queue_offset,
        },
        f"{queue.relative} holds queue offsets [{span.min_queue_offset}, "
        f"{span.max_queue_offset}) in units of {queue.unit_bytes} bytes",
    )
    return span


def _span_in_sound_log(store: StoredStore, queue: StoredQueue) -> QueueSpan | None:
    """
    Return the queue up to its last unit if there is no need to look for the end of the log.

    That takes seconds, and tells only which units a recovery would cut. None is due where a broker
    stopped cleanly or still runs, and the last unit leads to a message.
    """
    if not store.was_clean and store.process is None:
        return None
    log = store.commit_log
    span = queue_span(queue, log.start, log.end)
    unit = unit_at(queue, span.end - 1) if span.end > span.first else None
    if unit is None:
        return span
    file = log.file_of(unit.physical_offset)
    if file is None or unit.physical_offset + unit.size_bytes > file.end:
        return None
    try:
        found = read_dispatch_request(log.read(unit.physical_offset, unit.size_bytes))
    except CorruptMessageError:
        return None
    is_there = isinstance(found, DispatchRequest) and (
        (found.physical_offset, found.size_bytes) == (unit.physical_offset, unit.size_bytes)
    )
    return span if is_there else None


def _number_of(queue: StoredQueue, span: QueueSpan, queue_offset: int) -> int:
    """Return the number of the unit: of batches by binary search."""
    if not queue.is_batch:
        return queue_offset
    low, high = span.first, span.end
    while low < high:
        middle = (low + high) // 2
        unit = unit_at(queue, middle)
        if isinstance(unit, BatchUnit) and unit.queue_offset + unit.count <= queue_offset:
            low = middle + 1
        else:
            high = middle
    return low


def _follow(found: Explanation, store: StoredStore, queue: StoredQueue, number: int) -> Explanation:
    """Add the unit and where it leads."""
    file, position = queue.place(number)
    unit = unit_at(queue, number)
    if unit is None or not is_unit(unit):
        place = f"{store.directory}/{file}: position {position}"
        return found.end("damaged", f"{place}: no unit stands there; logstore reindex mends it")
    _add_unit(found, queue, unit, file, position)
    message = read_message(found, store, unit.physical_offset, unit.size_bytes)
    if message is None:
        return found
    if not isinstance(unit, BatchUnit):
        is_own = (message.topic, message.queue_id, message.queue_offset) == (
            queue.topic, queue.queue_id, number,
        )  # fmt: skip
        if not is_own and "INNER_MULTI_DISPATCH" not in message.properties:
            return found.end(
                "damaged",
                f"{store.directory}/{file}: position {position}: the unit leads to another "
                f"message: {message_sentence(message)}; logstore reindex mends it",
            )
    return add_message(found, message)


def _add_unit(found: Explanation, queue: StoredQueue, unit: Unit, file: str, position: int) -> None:
    fields: Fields = {
        "file": file,
        "position": position,
        "physicalOffset": unit.physical_offset,
        "size": unit.size_bytes,
        "tagsCode": unit.tags_code,
    }
    said = (
        f"{file}, position {position}: physical offset {unit.physical_offset}, "
        f"{unit.size_bytes} bytes, tags code {unit.tags_code}"
    )
    if isinstance(unit, BatchUnit):
        fields |= {"queueOffset": unit.queue_offset, "count": unit.count}
        said += f", a batch of {unit.count} from queue offset {unit.queue_offset} on"
    found.add("unit", fields, said)
    if is_ext_address(unit.tags_code) and queue.ext is not None:
        place = unit.tags_code + 2**63
        ext_file = queue.ext.file_of(place)
        ext = ConsumeQueueExtUnit.decode(queue.ext.read(place, 2**15))
        if ext is not None and ext_file is not None:
            at = place - ext_file.base
            found.add(
                "extension",
                {
                    "file": ext_file.relative,
                    "position": at,
                    "tagsCode": ext.tags_code,
                    "storeTimestamp": ext.store_timestamp_ms,
                    "bitMap": ext.bit_map.hex(),
                },
                f"the tags code is an address: {ext_file.relative}, position {at}: tags code "
                f"{ext.tags_code}, {len(ext.bit_map)} bytes of bit map",
            )


def explain_physical_offset(store: StoredStore, physical_offset: int) -> Explanation:
    """Return which message stands at, or around, a physical offset."""
    found = Explanation()
    log = store.commit_log
    file = log.file_of(physical_offset)
    start = None if file is None else _start_of(store, file.base, physical_offset)
    if start is not None and start != physical_offset:
        found.add(
            "walk",
            {"start": start},
            f"no message starts at {physical_offset}; it lies in the one that starts at {start}",
        )
    message = read_message(found, store, physical_offset if start is None else start)
    return found if message is None else add_message(found, message)


def _start_of(store: StoredStore, base: int, physical_offset: int) -> int | None:
    """Return where the record around a physical offset starts, by the lengths of those before."""
    log, position = store.commit_log, base
    while position <= physical_offset:
        size_bytes = int.from_bytes(log.read(position, 4), "big", signed=True)
        if size_bytes <= 0:
            return None
        if position + size_bytes > physical_offset:
            return position
        position += size_bytes
    return None


def explain_message_id(store: StoredStore, message_id: str) -> Explanation:
    """
    Return where the broker's id of a message leads.

    Raises:
        MessageIdError: it is none.

    """
    found = Explanation()
    host, physical_offset = parse_offset_message_id(message_id)
    found.add(
        "id",
        {"storeHost": str(host), "physicalOffset": physical_offset},
        f"says store host {host} and physical offset {physical_offset}",
    )
    log = store.commit_log
    if not log.start <= physical_offset < log.end:
        return found.end(
            "missing",
            f"the commit log holds [{log.start}, {log.end}): the message is deleted, or this is "
            "a unique key (--unique-key), or the id of another broker",
        )
    message = read_message(found, store, physical_offset)
    if message is None:
        return found
    if message.store_host != host:
        return found.end(
            "missing", f"the message there was stored by {message.store_host}: another broker's id"
        )
    return add_message(found, message)


def explain_time(store: StoredStore, topic: str, queue_id: int, timestamp_ms: int) -> Explanation:
    """Return how the first message of a queue that was stored at a time or later is found."""
    found = Explanation()
    queue = find_queue(store, topic, queue_id)
    span = _add_queue(found, store, queue)
    low, high = _first_number(queue, span), span.end
    first = low
    asked: list[Fields] = []
    while low < high:
        middle = (low + high) // 2
        stored_ms = _store_ms(store, queue, middle)
        if stored_ms is None:
            file, position = queue.place(middle)
            return found.end(
                "damaged",
                f"{store.directory}/{file}: position {position}: the unit leads to no message "
                "whose time could be asked; logstore reindex mends it",
            )
        asked.append({"number": middle, "storeTimestamp": stored_ms})
        if stored_ms < timestamp_ms:
            low = middle + 1
        else:
            high = middle
    when = f"{iso_time(timestamp_ms)} ({timestamp_ms})"
    found.add(
        "search",
        {"asked": asked, "found": low},
        f"binary search for {when}: {len(asked)} messages were asked for their store time",
    )
    if store.release is Release.V4:
        _add_nearest(found, store, queue, (first, low, span.end), timestamp_ms)
    if low >= span.end:
        newest_ms = None if span.end <= first else _store_ms(store, queue, span.end - 1)
        newest = "the queue is empty" if newest_ms is None else f"newest: {iso_time(newest_ms)}"
        return found.end("too-young", f"every message is older than {when}; {newest}")
    return _follow(found, store, queue, low)


def _add_nearest(
    found: Explanation,
    store: StoredStore,
    queue: StoredQueue,
    places: tuple[int, int, int],
    timestamp_ms: int,
) -> None:
    """Say which one a broker of 4.x answers with: `places` are first, found and end."""
    first, low, end = places
    if low == first:
        return
    nearest = low - 1
    if low < end:
        before_ms, at_ms = (_store_ms(store, queue, number) for number in (low - 1, low))
        if before_ms is None or at_ms is None:
            return
        if at_ms - timestamp_ms < timestamp_ms - before_ms:
            nearest = low
    found.add("release", {"nearest": nearest}, f"4.x answers with the nearest one: {nearest}")


def _first_number(queue: StoredQueue, span: QueueSpan) -> int:
    """Return the number of the unit with the first message that is there."""
    return (
        _number_of(queue, span, span.min_queue_offset)
        if queue.is_batch
        else (span.min_queue_offset)
    )


def _store_ms(store: StoredStore, queue: StoredQueue, number: int) -> int | None:
    unit = unit_at(queue, number)
    if isinstance(unit, BatchUnit):
        return unit.store_timestamp_ms
    if unit is None or not is_unit(unit):
        return None
    message = read_message(Explanation(), store, unit.physical_offset, unit.size_bytes)
    return None if message is None else message.store_timestamp_ms
