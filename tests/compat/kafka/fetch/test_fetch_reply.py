"""The answer to a Fetch: what kafka-python reads in it, and what the session remembers of it."""

from __future__ import annotations

import uuid
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.connection import Chunk
from logstore.compat.kafka.fetch.reply import Found, encode
from logstore.compat.kafka.fetch.sessions import FetchPartition, FetchSession
from logstore.segment import Extent
from logstore.testing.simulated_host import SimulatedHost
from tests.compat.kafka.conversation import joined, message_class, plain

VERSIONS = range(4, 19)
DATA = bytes(range(256)) * 4


@attrs.define
class Question:
    """What of a request shapes the answer."""

    version: int
    correlation_id: int = 77
    session_id: int = 0
    session: FetchSession | None = None
    is_incremental: bool = False
    endpoints: bytes = b""


def extent(position: int, size_bytes: int) -> Extent:
    """Return a run of a file."""
    fs = SimulatedHost().fs
    file = fs.open("/log", create=True)
    file.write(0, DATA)
    return Extent(file, position, size_bytes)


def read(version: int, chunks: list[Chunk]) -> dict[str, Any]:
    """Return an answer as the library reads it, after it has written the very same bytes."""
    frame = joined(chunks)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    response = message_class("FetchResponse")
    message = response.decode(frame, version=version, header=True, framed=True)
    assert frame[9 if version >= 12 else 8 :] == bytes(response.encode(message))
    answer: dict[str, Any] = plain(message)
    return answer


def key_of(topic: int, index: int, version: int) -> tuple[bytes, int]:
    """Return the key of a partition as a request of this version names it."""
    name = uuid.UUID(int=topic + 1).bytes if version >= 13 else f"topic-{topic}".encode()
    return name, index


numbers = st.integers(-1, 2**63 - 1)
found_things = st.lists(
    st.fixed_dictionaries(
        {
            "place": st.tuples(st.integers(0, 2), st.integers(0, 2**31 - 1)),
            "error": st.sampled_from([0, 0, 0, 1, 3, 74, 100]),
            "high_watermark": numbers,
            "last_stable_offset": numbers,
            "log_start_offset": numbers,
            "run": st.none() | st.tuples(st.integers(0, 500), st.integers(0, 500)),
            "diverging": st.none() | st.tuples(st.integers(0, 2**31 - 1), numbers),
            "aborted": st.none() | st.lists(st.tuples(numbers, numbers), max_size=3),
        }
    ),
    max_size=6,
    unique_by=lambda fields: str(fields["place"]),
)


@given(
    version=st.sampled_from(VERSIONS),
    things=found_things,
    error=st.sampled_from([0, 70, 71, 106]),
)
def test_the_library_reads_what_was_found(
    version: int, things: list[dict[str, Any]], error: int
) -> None:
    """In every version every field arrives, and the library would have written the same bytes."""
    found: list[Found] = []
    for fields in things:
        values = dict(fields)
        (topic, index), run = values.pop("place"), values.pop("run")
        wanted = FetchPartition(key_of(topic, index, version), 0, 1)
        found.append(Found(wanted, extent=None if run is None else extent(*run), **values))
    question = Question(version)
    answer = read(version, encode(question, found, error))

    assert answer["throttle_time_ms"] == 0
    assert answer.get("error_code", error) == error
    assert answer.get("session_id", 0) == 0
    results = [
        ((topic["topic_id"].bytes if version >= 13 else topic["topic"].encode()), result)
        for topic in answer["responses"]
        for result in topic["partitions"]
    ]
    assert [(key, result["partition_index"]) for key, result in results] == [
        one.wanted.key for one in found
    ], "in the order in which they were served"
    by_key = {(key, result["partition_index"]): result for key, result in results}
    for one in found:
        check_result(by_key[one.wanted.key], one, question)


def check_result(result: dict[str, Any], one: Found, question: Question) -> None:
    """Compare what was read with what was found."""
    version = question.version
    assert result["error_code"] == one.error
    assert result["high_watermark"] == one.high_watermark
    assert result["last_stable_offset"] == one.last_stable_offset
    assert result.get("log_start_offset", one.log_start_offset) == one.log_start_offset
    assert result.get("preferred_read_replica", -1) == -1
    assert ("preferred_read_replica" in result) == (version >= 11)
    records = b"" if one.extent is None else one.extent.read()
    assert bytes(result["records"] or b"") == records
    aborted = result["aborted_transactions"]
    if one.aborted is None:
        assert aborted is None
    else:
        assert aborted == [{"producer_id": p, "first_offset": o} for p, o in one.aborted]
    diverging = result.get("diverging_epoch")
    if version < 12 or one.diverging is None:
        assert diverging is None
    else:
        assert diverging == dict(zip(("epoch", "end_offset"), one.diverging, strict=True))


@pytest.mark.parametrize("version", VERSIONS)
def test_stored_bytes_are_left_in_their_file(version: int) -> None:
    """Between the pieces that are written stand the runs of files, in order, unread."""
    runs = [extent(0, 100), extent(7, 0), extent(200, 55)]
    found = [
        Found(FetchPartition(key_of(0, index, version), 0, 1), extent=run)
        for index, run in enumerate(runs)
    ]
    chunks = encode(Question(version), found)
    assert [chunk for chunk in chunks if isinstance(chunk, Extent)] == [runs[0], runs[2]]
    assert not any(isinstance(one, bytes) and not one for one in chunks)


def session_of(*keys: tuple[bytes, int]) -> FetchSession:
    """Return a session that wants these partitions from offset 0 on."""
    return FetchSession(9, False, {key: FetchPartition(key, 0, 1) for key in keys})


def answered(session: FetchSession, *found: Found, is_incremental: bool = True) -> list[int]:
    """Return the partitions that the answer names."""
    question = Question(7, session=session, is_incremental=is_incremental)
    answer = read(7, encode(question, list(found)))
    assert answer["session_id"] == 9
    return [one["partition_index"] for topic in answer["responses"] for one in topic["partitions"]]


KEYS = [(b"t", index) for index in range(3)]


@pytest.mark.parametrize(
    ("change", "is_news"),
    [
        ({}, False),
        ({"last_stable_offset": 7}, False),
        ({"high_watermark": 6}, True),
        ({"log_start_offset": 1}, True),
        ({"error": 1}, True),
        ({"diverging": (1, 2)}, True),
        ({"extent": extent(0, 1)}, True),
        ({"extent": extent(0, 0)}, False),
    ],
    ids=[
        "nothing",
        "last stable offset",
        "high watermark",
        "log start",
        "error",
        "diverging",
        "records",
        "no records",
    ],
)
def test_an_incremental_answer_names_what_is_news(change: dict[str, Any], is_news: bool) -> None:
    """Records, an error, a new high watermark or log start, a diverging epoch; nothing else."""
    session = session_of(KEYS[0])
    wanted = session.partitions[KEYS[0]]
    before: dict[str, Any] = {
        "high_watermark": 5,
        "last_stable_offset": 5,
        "log_start_offset": 0,
    }
    assert answered(session, Found(wanted, **before), is_incremental=False) == [0]
    assert answered(session, Found(wanted, **before)) == []
    assert answered(session, Found(wanted, **{**before, **change})) == ([0] if is_news else [])


def test_the_first_answer_names_everything() -> None:
    """What a session was never told is news, also that a log is empty."""
    session = session_of(*KEYS)
    found = [Found(wanted, 0, 0, 0, 0) for wanted in session.partitions.values()]
    assert answered(session, *found) == [0, 1, 2]
    assert answered(session, *found) == []


def test_an_error_that_ends_is_news() -> None:
    """After an error the next good answer names the partition even if nothing moved."""
    session = session_of(KEYS[0])
    wanted = session.partitions[KEYS[0]]
    good = Found(wanted, 0, 5, 5, 0)
    assert answered(session, good) == [0]
    assert answered(session, Found(wanted, 3)) == [0]
    assert answered(session, Found(wanted, 3)) == [0]
    assert answered(session, good) == [0]
    assert answered(session, good) == []


def test_partitions_with_data_go_to_the_end_of_the_queue() -> None:
    """Who was served is served last next time, so that nobody starves."""
    session = session_of(*KEYS)
    wanted = list(session.partitions.values())
    answered(session, Found(wanted[0], extent=extent(0, 1)), Found(wanted[1]), Found(wanted[2]))
    assert list(session.partitions) == [KEYS[1], KEYS[2], KEYS[0]]
    answered(session, Found(wanted[1], extent=extent(0, 1)), Found(wanted[2], extent=extent(0, 1)))
    assert list(session.partitions) == [KEYS[0], KEYS[1], KEYS[2]]


def test_the_answer_that_opens_a_session_gives_it_its_order() -> None:
    """Who had data in it is not served last for that: those that are unknown are."""
    session = session_of(*KEYS)
    wanted = list(session.partitions.values())
    found = [Found(wanted[1], extent=extent(0, 1)), Found(wanted[2]), Found(wanted[0], 3)]
    encode(Question(12, session=session), found)
    assert list(session.partitions) == [KEYS[1], KEYS[2], KEYS[0]]


def test_a_partition_that_left_the_session_meanwhile_does_not_matter() -> None:
    """A request over another connection may have forgotten it while this answer was waiting."""
    session = session_of(*KEYS[:2])
    wanted = list(session.partitions.values())
    del session.partitions[KEYS[0]]
    found = [Found(one, extent=extent(0, 1)) for one in wanted]
    assert answered(session, *found) == [0, 1]
    assert list(session.partitions) == [KEYS[1]]
