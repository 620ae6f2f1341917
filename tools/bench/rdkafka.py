"""
librdkafka without Python on the way of a record: its C functions called for whole arrays.

The confluent-kafka wheel brings the library; ``rd_kafka_produce_batch`` takes prepared messages by
the thousand and copies none of them, so that what is measured is librdkafka and the broker. Only
failed deliveries are reported; what librdkafka no longer holds and has not reported was
acknowledged.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import attrs

from logstore.tools.bench.frames import BenchError

MISSING = "no librdkafka here: install confluent-kafka (extra `test`)"
MESSAGES_A_CALL = 1000
FLUSH_SECONDS_MAX = 60

_PRODUCER = 0
_CONF_OK = 0
_EVENT_DELIVERY_REPORT = 0x1
_MESSAGE_FLAG_BLOCK = 0x4
_UNASSIGNED = -1


class _Message(ctypes.Structure):
    """rd_kafka_message_t."""

    _fields_ = (
        ("err", ctypes.c_int),
        ("rkt", ctypes.c_void_p),
        ("partition", ctypes.c_int32),
        ("payload", ctypes.c_void_p),
        ("len", ctypes.c_size_t),
        ("key", ctypes.c_void_p),
        ("key_len", ctypes.c_size_t),
        ("offset", ctypes.c_int64),
        ("private", ctypes.c_void_p),
    )


class Values:
    """Message values in one piece of memory, with arrays of messages that point into it."""

    def __init__(self, values: Sequence[bytes]) -> None:
        self._memory = ctypes.create_string_buffer(b"".join(values))
        self.arrays: list[tuple[Any, int]] = []
        address = ctypes.addressof(self._memory)
        for start in range(0, len(values), MESSAGES_A_CALL):
            part = values[start : start + MESSAGES_A_CALL]
            array = (_Message * len(part))()
            for message, value in zip(array, part, strict=True):
                message.payload = address
                message.len = len(value)
                address += len(value)
            self.arrays.append((array, len(part)))


@attrs.frozen
class Produced:
    """Records acknowledged, and the seconds from the first call to the last acknowledgement."""

    records: int
    seconds: float


class NativeProducer:
    """
    A librdkafka producer for one topic. `settings` are librdkafka's own names.

    Everything else has librdkafka's defaults (linger 5 ms, batches of up to 1 MB or 10,000
    messages), but for the queue: 128 MB, so that the last acknowledgement comes soon.
    """

    def __init__(self, bootstrap: str, topic: str, settings: Mapping[str, object]) -> None:
        self._lib = library()
        conf = self._lib.rd_kafka_conf_new()
        merged: dict[str, object] = {
            "bootstrap.servers": bootstrap,
            "delivery.report.only.error": "true",
            "queue.buffering.max.kbytes": 131_072,
            "message.timeout.ms": 30_000,
            "log_level": 2,  # what fails is raised here, not logged
        } | dict(settings)
        error = ctypes.create_string_buffer(512)
        for name, value in merged.items():
            done = self._lib.rd_kafka_conf_set(
                conf, name.encode(), str(value).encode(), error, len(error)
            )
            if done != _CONF_OK:
                raise BenchError(f"librdkafka: {error.value.decode()}")
        self._lib.rd_kafka_conf_set_events(conf, _EVENT_DELIVERY_REPORT)
        self._producer = self._lib.rd_kafka_new(_PRODUCER, conf, error, len(error))
        if not self._producer:
            raise BenchError(f"librdkafka: {error.value.decode()}")
        self._topic = self._lib.rd_kafka_topic_new(self._producer, topic.encode(), None)
        self._queue = self._lib.rd_kafka_queue_get_main(self._producer)

    def produce(self, values: Values, *, seconds: float) -> Produced:
        """
        Hand over the values again and again for so long, then wait for every acknowledgement.

        Raises :class:`BenchError` where a delivery failed or does not end.
        """
        handed = calls = 0
        started = time.perf_counter()
        stop_at = started + seconds
        while time.perf_counter() < stop_at:
            array, count = values.arrays[calls % len(values.arrays)]
            taken = self._lib.rd_kafka_produce_batch(
                self._topic, _UNASSIGNED, _MESSAGE_FLAG_BLOCK, array, count
            )
            if taken != count:
                refused = next(one.err for one in array if one.err)
                raise BenchError(f"librdkafka refused a message: {self._error(refused)}")
            handed += taken
            calls += 1
        self._flush()
        return Produced(handed, time.perf_counter() - started)

    def _flush(self) -> None:
        deadline = time.monotonic() + FLUSH_SECONDS_MAX
        while self._lib.rd_kafka_flush(self._producer, 500):
            self._raise_if_failed()
            if time.monotonic() > deadline:
                raise BenchError(f"librdkafka: not acknowledged after {FLUSH_SECONDS_MAX} s")
        self._raise_if_failed()

    def _raise_if_failed(self) -> None:
        event = self._lib.rd_kafka_queue_poll(self._queue, 0)
        if not event:
            return
        try:
            count = self._lib.rd_kafka_event_message_count(event)
            if count:
                message = self._lib.rd_kafka_event_message_next(event).contents
                raise BenchError(
                    f"librdkafka: {count} or more deliveries failed: {self._error(message.err)}"
                )
        finally:
            self._lib.rd_kafka_event_destroy(event)

    def _error(self, code: int) -> str:
        return str(self._lib.rd_kafka_err2str(code).decode())

    def close(self) -> None:
        """Drop what is queued and give everything back."""
        self._lib.rd_kafka_purge(self._producer, 0x1 | 0x2)
        self._lib.rd_kafka_queue_destroy(self._queue)
        self._lib.rd_kafka_topic_destroy(self._topic)
        self._lib.rd_kafka_destroy(self._producer)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


@cache
def library() -> Any:
    """
    Return librdkafka with its functions declared.

    Raises :class:`BenchError` where neither confluent-kafka nor a system library is installed.
    """
    path = _library_path()
    if path is None:
        raise BenchError(MISSING)
    lib: Any = ctypes.CDLL(path)
    pointer, text, number, size = (
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_size_t,
    )
    functions: dict[str, tuple[Any, list[Any]]] = {
        "conf_new": (pointer, []),
        "conf_set": (number, [pointer, text, text, text, size]),
        "conf_set_events": (None, [pointer, number]),
        "new": (pointer, [number, pointer, text, size]),
        "topic_new": (pointer, [pointer, text, pointer]),
        "queue_get_main": (pointer, [pointer]),
        "queue_poll": (pointer, [pointer, number]),
        "produce_batch": (number, [pointer, ctypes.c_int32, number, pointer, number]),
        "flush": (number, [pointer, number]),
        "purge": (number, [pointer, number]),
        "event_message_count": (size, [pointer]),
        "event_message_next": (ctypes.POINTER(_Message), [pointer]),
        "event_destroy": (None, [pointer]),
        "err2str": (text, [number]),
        "queue_destroy": (None, [pointer]),
        "topic_destroy": (None, [pointer]),
        "destroy": (None, [pointer]),
    }
    for name, (result, arguments) in functions.items():
        function = getattr(lib, f"rd_kafka_{name}")
        function.restype = result
        function.argtypes = arguments
    return lib


def _library_path() -> str | None:
    """Find the library of the wheel (auditwheel and delocate put it elsewhere), or the system's."""
    spec = importlib.util.find_spec("confluent_kafka")
    if spec is not None and spec.origin is not None:
        package = Path(spec.origin).parent
        for directory in (package.with_name("confluent_kafka.libs"), package / ".dylibs"):
            for found in sorted(directory.glob("librdkafka*")):
                return str(found)
    return ctypes.util.find_library("rdkafka")
