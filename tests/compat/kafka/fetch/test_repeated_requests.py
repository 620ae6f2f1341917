"""Whatever was asked before on a connection: a request says what it says."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.compat.kafka.fetch import repeats
from logstore.compat.kafka.fetch.query import Query, parse
from logstore.compat.kafka.fetch.repeats import Repeats
from logstore.compat.kafka.registry import RawRequest
from tests.compat.kafka.conversation import build, message_class
from tests.compat.kafka.peer import a_broker, fetch_fields

_LISTENER = a_broker().listener
_NAMES = ("t", "u", "longer")
_IDS = tuple(uuid.UUID(int=number) for number in (1, 2, 3))
_VERSIONS = (4, 5, 7, 9, 11, 12, 13, 16)

partitions = st.fixed_dictionaries(
    {
        "partition": st.integers(0, 2),
        "fetch_offset": st.sampled_from([0, 1, 2**40]),
        "partition_max_bytes": st.sampled_from([1, 1 << 20]),
    }
)
topics = st.lists(st.tuples(st.integers(0, 2), st.lists(partitions, max_size=3)), max_size=2)
requests = st.fixed_dictionaries(
    {
        "topics": topics,
        "forgotten": st.sampled_from([[], [], [], [(0, [1])]]),
        "session": st.sampled_from([(0, -1), (0, -1), (0, 0), (7, 1), (7, 2), (7, 3), (8, 3)]),
        "isolation_level": st.sampled_from([0, 0, 1]),
        "rack_id": st.sampled_from(["", "", "a", "b"]),
    }
)


def body_of(version: int, asked: Mapping[str, Any]) -> bytes:
    """Return the body of a request."""
    names: tuple[Any, ...] = _IDS if version >= 13 else _NAMES
    fields = fetch_fields(
        [(names[topic], wanted) for topic, wanted in asked["topics"]],
        version,
        forgotten=[(names[topic], indexes) for topic, indexes in asked["forgotten"]],
        isolation_level=asked["isolation_level"],
    )
    if version >= 7:
        fields["session_id"], fields["session_epoch"] = asked["session"]
    if version >= 11:
        fields["rack_id"] = asked["rack_id"]
    body: bytes = build(message_class("FetchRequest"), version, fields).encode(version=version)
    return body


def raw(version: int, body: bytes, correlation_id: int) -> RawRequest:
    """Return a request as its handler gets it, behind a header of some bytes."""
    return RawRequest(version, correlation_id, memoryview(b"head" + body), 4, version >= 12)


def said(query: Query) -> dict[str, Any]:
    """Return all that a request says; not what is kept of the one before."""
    found = {
        field.name: getattr(query, field.name)
        for field in attrs.fields(Query)
        if field.name not in ("wanted", "earlier", "keep")
    }
    found["wanted"] = [
        {field.name: getattr(one, field.name) for field in attrs.fields(type(one))}
        for one in query.wanted
    ]
    return found


@pytest.mark.parametrize("count_min", [1, 16])
@given(version=st.sampled_from(_VERSIONS), asked=st.lists(requests, min_size=2, max_size=8))
def test_a_request_is_read_as_if_it_were_the_first(
    count_min: int, version: int, asked: list[dict[str, Any]]
) -> None:
    """However much it is like the one before it, twice each."""
    reader = Repeats()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeats, "_COUNT_MIN", count_min)
        twice_each = [body_of(version, one) for one in asked for _ in range(2)]
        for number, body in enumerate(twice_each):
            request = raw(version, body, number)
            expected = said(parse(request, _LISTENER))
            assert said(reader.parse(request, _LISTENER)) == expected


@pytest.mark.parametrize("version", _VERSIONS)
def test_what_repeats_the_one_before_is_not_read_anew(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an offset and an epoch that move on the rest need not be read."""
    reads: list[int] = []

    def counted(*arguments: Any) -> Query:
        reads.append(1)
        return parse(*arguments)

    monkeypatch.setattr(repeats, "parse", counted)
    reader = Repeats()
    for epoch in range(1, 5):
        wanted = {"partition": 2, "fetch_offset": epoch, "partition_max_bytes": 9}
        asked = {
            "topics": [(0, [wanted])],
            "forgotten": [],
            "session": (7, epoch),
            "isolation_level": 1,
            "rack_id": "a",
        }
        query = reader.parse(raw(version, body_of(version, asked), epoch), _LISTENER)
        assert [one.fetch_offset for one in query.wanted] == [epoch]
        assert query.session_epoch == (epoch if version >= 7 else -1)
    assert len(reads) == 1
