"""What real clients said to real servers, said to ours: the same answers, in every split."""

from __future__ import annotations

from functools import cache

import pytest

from tests.compat.rocketmq.transcript import Rehearsal
from tests.compat.rocketmq.transcript_comparison import differences
from tests.segments.rocketmq.golden_case import GoldenCase, golden_cases

CASES = golden_cases("wire", "wire-cpp")
#: where ours answers otherwise than the recorded release, and why: (release, code) -> reason
OTHERWISE = {
    ("5.5.0", 215): "5.5.0 fails with a null pointer where the timer wheel is off",
    ("4.9.8", 14): "5.x knows no offset of a new group on a topic that was never read",
    ("4.9.8", 15): "5.x refuses offsets of a group that was just reset by the server",
    ("4.9.8", 208): "the offsets were reset by the server before, as 5.x does",
    ("4.9.8", 222): "5.x resets offsets of groups that are not online, too",
    ("4.9.8", 321): "messages are larger: 5.x stores cluster, region and trace switch with them",
}
#: answers of the recording that its own threads raced for: (case, recording, opaque) -> reason
RACES = {
    ("wire-4.9.8", "java_binary", 101): "the new retry topic was not registered yet",
    ("wire-4.9.8", "java_binary", 138): "the new retry topic was not registered yet",
    ("wire-4.9.8", "java_binary", 156): "the pull overtook the heart beat with a new subscription",
}
#: requests that servers make by themselves, and the field that tells them apart
CONSUMERS_CHANGED, CHECK_TRANSACTION = 40, 39


@cache
def held(case_id: str, chunk_bytes: int) -> Rehearsal:
    """Return the rehearsal of a case, held once."""
    (case,) = (one for one in CASES if one.id == case_id)
    rehearsal = Rehearsal(case, chunk_bytes)
    rehearsal.hold()
    return rehearsal


@pytest.mark.parametrize("chunk_bytes", [0, 1, 100])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_same_answers(case: GoldenCase, chunk_bytes: int) -> None:
    """Code, remark, fields and body of every answer, but for ids, times and addresses."""
    version, case_id = case.version, case.id
    exchanges = list(held(case_id, chunk_bytes).exchanges())
    assert len(exchanges) > 30
    found = {
        f"{exchange.recording} {exchange.opaque}: request {exchange.code}": wrong
        for exchange in exchanges
        if (version, exchange.code) not in OTHERWISE
        and (case_id, exchange.recording, exchange.opaque) not in RACES
        and (wrong := differences(exchange, is_4=version == "4.9.8"))
    }
    assert found == {}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_is_otherwise_is_answered(case: GoldenCase) -> None:
    """Where ours follows another release than the recorded one there is an answer all the same."""
    rehearsal = held(case.id, 0)
    assert [one for one in rehearsal.exchanges() if one.ours is None] == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_clients_are_told_the_same(case: GoldenCase) -> None:
    """Each connection hears of changed groups and open transactions that the recording has."""
    rehearsal = held(case.id, 0)
    heard = 0
    for key, said in rehearsal.theirs.items():
        for code, name in ((CONSUMERS_CHANGED, "consumerGroup"), (CHECK_TRANSACTION, "msgId")):
            theirs = {(one.fields or {})[name] for one in rehearsal.told(said, code)}
            ours = {(one.fields or {})[name] for one in rehearsal.told(rehearsal.ours[key], code)}
            assert theirs <= ours
            heard += len(theirs)
    assert heard > 0


@pytest.mark.parametrize("case", [case for case in CASES if case.version == "5.5.0"],
                         ids=lambda case: case.id)  # fmt: skip
def test_headers_byte_for_byte(case: GoldenCase) -> None:
    """JSON headers of 5.5.0 that hold no id, time or place are written in the same bytes."""
    compared = 0
    for exchange in held(case.id, 0).exchanges():
        theirs, ours = exchange.theirs, exchange.ours
        if ours is None or ours.serializer != theirs.serializer:
            continue
        if (theirs.code, theirs.remark, theirs.fields) == (ours.code, ours.remark, ours.fields):
            assert ours.header == theirs.header
            compared += 1
    assert compared > 15
