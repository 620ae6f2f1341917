"""
Fetch (1): versions 4-18.

* stored bytes go out as they stand: runs of segment files, never read here
* limits: the request's and each partition's; the first non-empty partition gives at least one batch
* waits until enough bytes are there, the maximal wait is over, or something is wrong
* read_committed (v4) stops at the last stable offset, and names the aborted transactions
* v5: log start offset; v7: incremental sessions (KIP-227); v9: leader epoch fencing (KIP-320)
* v11: any replica may be read from, and with a `replica.selector.class` that goes by racks the
  leader sends readers to one in theirs (KIP-392); v12: flexible, diverging epoch (KIP-595)
* v13: topics by id (KIP-516); v15: replica state as a tag; v16: node endpoints; v17, 18: tags of
  replicas, skipped
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.fetch.query import FROM_FOLLOWERS_SINCE, READ_COMMITTED, Query
from logstore.compat.kafka.fetch.repeats import Repeats
from logstore.compat.kafka.fetch.reply import Found
from logstore.compat.kafka.fetch.reply import encode as encode_found
from logstore.compat.kafka.fetch.sessions import FetchPartition
from logstore.compat.kafka.leader_fencing import fencing_error
from logstore.compat.kafka.node_endpoint import node_endpoints
from logstore.compat.kafka.nodes.placement import NOBODY
from logstore.compat.kafka.nodes.racks import preferred_replica
from logstore.compat.kafka.refusals import code_of
from logstore.compat.kafka.registry import RawRequest
from logstore.compat.waiting import Later
from logstore.errors import LogStoreError, OffsetOutOfRangeError

if TYPE_CHECKING:
    from logstore.compat.connection import Chunk
    from logstore.compat.kafka.broker import Broker
    from logstore.compat.kafka.connection import Client
    from logstore.segments.kafka.partition import KafkaPartition

_FIRST_WITH_ENDPOINTS = 16
_INITIAL_EPOCH, _FINAL_EPOCH = 0, -1


#: (query, what was found) -> the whole answer
Encode = Callable[[Query, list[Found]], "list[Chunk]"]


def handle(
    broker: Broker, client: Client, request: RawRequest
) -> list[Chunk] | Later[list[Chunk]] | None:
    """Read what is there; if that is too little, wait for more."""
    repeats = client.fetch_repeats
    if repeats is None:
        repeats = client.fetch_repeats = Repeats()
    return answer(broker, repeats.parse(request, client.listener))


def answer(
    broker: Broker, query: Query, encode: Encode = encode_found
) -> list[Chunk] | Later[list[Chunk]]:
    """Answer a request that is read; `encode` writes what was found."""
    error = _enter_session(broker, query)
    if error:
        return encode_found(query, [], error)
    wanted = query.all_wanted
    if query.session is None and len(wanted) > 1 and query.keep is None:
        # Of a partition that is named twice the last is meant.
        wanted = list({one.key: one for one in wanted}.values())
    found, is_final = _look(broker, query, query.news_among(wanted), query.earlier)
    if not 0 <= query.isolation <= READ_COMMITTED and any(one.rank == 0 for one in found):
        return _failed(query)
    if is_final or query.max_wait_ms <= 0 or not wanted:
        return _encoded(query, found, encode)
    return _wait(broker, query, wanted, found, encode)


def _encoded(query: Query, found: list[Found], encode: Encode) -> list[Chunk]:
    answer = encode(query, found)
    if query.keep is not None:
        query.keep(found)
    return answer


def _failed(query: Query) -> list[Chunk]:
    """Answer a request that asks for an isolation which there is not, after it has its session."""
    code = ErrorCode.UNKNOWN_SERVER_ERROR
    if query.session_epoch == _INITIAL_EPOCH:
        query.session = None  # it is there, and is not told
    by_name = query.wanted if query.version < 13 else ()
    return encode_found(query, [Found(one, code, aborted=[]) for one in by_name], code)


def _enter_session(broker: Broker, query: Query) -> int:
    """Close, open or continue the session that the request names; return an error code."""
    sessions = broker.fetch_sessions
    uses_ids = query.version >= 13
    if query.session_epoch in (_INITIAL_EPOCH, _FINAL_EPOCH):
        sessions.close(query.session_id)
        if query.session_epoch != _FINAL_EPOCH:
            _note_known(broker, query)
            query.session = sessions.open(query.wanted, uses_ids=uses_ids)
        return 0
    _note_known(broker, query)
    session = sessions.continued(
        query.session_id,
        query.session_epoch,
        query.wanted,
        query.forgotten,
        uses_ids=uses_ids,
    )
    if isinstance(session, ErrorCode):
        return session
    query.session = session if session.partitions else None
    return 0


def _note_known(broker: Broker, query: Query) -> None:
    """Note which topics have a name, which a session keeps for an id when the topic goes."""
    if query.version >= 13:
        for wanted in query.wanted:
            for partition in broker.by_id.get(wanted.key[0], {}).values():
                wanted.topic = partition.topic.encode()
                break


def _look(
    broker: Broker, query: Query, wanted: list[FetchPartition], earlier: Sequence[Found | None] = ()
) -> tuple[list[Found], bool]:
    """
    Read every partition within the limits; tell whether the answer need not wait.

    What was found `earlier`, in all of them nothing to read, is not looked for once more where the
    log is as it was; None is to be looked for.
    """
    budget = min(query.bytes_max, broker.config.fetch_max_bytes)
    left, total_bytes, has_error, is_sent_on = budget, 0, False, False
    found: list[Found] = []
    read = _read if query.may_read is None else _read_if_allowed
    for partition, result in zip_longest(wanted, earlier):
        if result is None or not partition.is_as_it_was(
            result.log_start_offset, result.high_watermark
        ):
            result = read(broker, query, partition, left, total_bytes == 0)
        found.append(result)
        if result.extent is not None:
            total_bytes += result.extent.size_bytes
        if not result.rank:  # also a budget below 0, which the first that is there alone sees
            left = max(0, budget - total_bytes)
        if result.error or result.diverging is not None:
            has_error = True
        elif result.preferred_replica != NOBODY:
            is_sent_on = True
    if has_error:  # what the cluster does not know comes behind what was read
        found.sort(key=_rank_of)
    is_final = has_error or is_sent_on or total_bytes >= max(min(query.bytes_min, budget), 0)
    return found, is_final


def _rank_of(result: Found) -> int:
    return result.rank


def _read_if_allowed(
    broker: Broker, query: Query, wanted: FetchPartition, budget: int, is_first: bool
) -> Found:
    if query.may_read is not None and not query.may_read(wanted.key[0]):
        return Found(wanted, ErrorCode.TOPIC_AUTHORIZATION_FAILED, aborted=[], rank=2)
    return _read(broker, query, wanted, budget, is_first)


def _read(
    broker: Broker, query: Query, wanted: FetchPartition, budget: int, is_first: bool
) -> Found:
    topic, index = wanted.key
    partitions = (broker.by_id if query.version >= 13 else broker.by_name).get(topic)
    if partitions is None or index not in partitions:
        return _unknown(broker, query, wanted, is_topic_known=partitions is not None)
    partition = partitions[index]
    epoch = wanted.leader_epoch
    if (epoch >= 0 and epoch != partition.leader_epoch) or not broker.nodes.is_alone:
        refused = _refusal(broker, query, wanted, partition)
        if refused is not None:
            return refused
        preferred = _preferred_replica(broker, query, wanted, partition)
        if preferred != NOBODY:
            end, stable = partition.end_offset, partition.last_stable_offset
            found = Found(wanted, 0, end, stable, partition.start_offset)
            found.preferred_replica = preferred
            return found
    end = partition.end_offset
    found = Found(wanted, 0, end, partition.last_stable_offset, partition.start_offset)
    wanted.looked_at(partition, partitions)
    if wanted.last_fetched_epoch >= 0:
        end_of_epoch = partition.leader_epochs.end_offset_for(wanted.last_fetched_epoch, end)
        if end_of_epoch[0] < 0 or wanted.fetch_offset < partition.start_offset:
            return Found(wanted, ErrorCode.OFFSET_OUT_OF_RANGE)
        if end_of_epoch[0] < wanted.last_fetched_epoch or end_of_epoch[1] < wanted.fetch_offset:
            found.diverging = end_of_epoch  # the fetcher's log leaves ours there (KIP-595)
            return found
    if wanted.fetch_offset != end:
        return _read_records(partition, query, found, budget, is_first=is_first)
    # A reader that says where it is may be sent elsewhere as soon as somebody there is in sync.
    is_settled = not (query.rack and broker.placements.select_by_rack)
    wanted.is_quiet = is_settled and not found.is_news
    found.is_settled = is_settled
    if query.is_read_committed:
        found.aborted = []
    return found


def _unknown(
    broker: Broker, query: Query, wanted: FetchPartition, *, is_topic_known: bool
) -> Found:
    """Return what is told of a partition that is not there."""
    if query.version >= 13 and not is_topic_known:
        if not wanted.topic:
            return Found(wanted, ErrorCode.UNKNOWN_TOPIC_ID, aborted=[], rank=1)
        if wanted.key[1] in broker.by_name.get(wanted.topic, ()):  # there is another of that name
            return Found(wanted, ErrorCode.INCONSISTENT_TOPIC_ID)
    return Found(wanted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, aborted=[], rank=2)


def _preferred_replica(
    broker: Broker, query: Query, wanted: FetchPartition, partition: KafkaPartition
) -> int:
    """Return the follower that a reader is sent to; nobody where the leader answers it."""
    is_there = partition.start_offset <= wanted.fetch_offset <= partition.end_offset
    if not (broker.placements.select_by_rack and query.rack and is_there):
        return NOBODY
    return preferred_replica(broker, query.listener or broker.listener, partition, query.rack)


def _refusal(
    broker: Broker, query: Query, wanted: FetchPartition, partition: KafkaPartition
) -> Found | None:
    """Refuse an epoch that is not, and tell newer clients who leads now, and where that is."""
    listener = query.listener or broker.listener
    may_follow = query.version >= FROM_FOLLOWERS_SINCE
    code = fencing_error(broker, listener, partition, wanted.leader_epoch, may_follow=may_follow)
    if code is ErrorCode.NONE:
        return None
    found = Found(wanted, code)
    is_told = code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
    if is_told and query.version >= _FIRST_WITH_ENDPOINTS and query.listener is not None:
        leader = broker.placements.of(partition).leader
        found.leader = leader, partition.leader_epoch
        query.leaders.add(leader)
        query.endpoints = node_endpoints(broker, query.listener, query.leaders)
    return found


def _read_records(
    partition: KafkaPartition, query: Query, found: Found, budget: int, *, is_first: bool
) -> Found:
    """Put what may be read of a partition into what was found."""
    wanted = found.wanted
    if query.is_read_committed:
        found.aborted = []
    is_plain = not query.is_read_committed and wanted.size_bytes_max >= 0
    if budget <= 0 and not is_first and is_plain:  # a wrong offset is told all the same
        is_there = partition.start_offset <= wanted.fetch_offset <= partition.end_offset
        return found if is_there else Found(wanted, ErrorCode.OFFSET_OUT_OF_RANGE)
    size_bytes_max = min(budget, wanted.size_bytes_max)
    if size_bytes_max < 0:
        limit = found.last_stable_offset if query.is_read_committed else found.high_watermark
        if partition.start_offset <= wanted.fetch_offset < limit:
            return Found(wanted, ErrorCode.UNKNOWN_SERVER_ERROR)
        size_bytes_max = 0
    try:
        if query.is_read_committed:
            committed = partition.read_committed(
                wanted.fetch_offset, size_bytes_max, is_first_whole=is_first
            )
            found.extent = committed.extent
            found.aborted = [(t.producer_id, t.first_offset) for t in committed.aborted]
            if committed.extent and not committed.extent.size_bytes and size_bytes_max:
                found.aborted = None  # the first batch does not fit, and then none are told
        else:
            found.extent = partition.read(
                wanted.fetch_offset, size_bytes_max, is_first_whole=is_first
            )
    except OffsetOutOfRangeError:
        return Found(wanted, ErrorCode.OFFSET_OUT_OF_RANGE)
    except (LogStoreError, OSError) as error:
        return Found(wanted, code_of(error))
    return found


def _wait(
    broker: Broker,
    query: Query,
    wanted: list[FetchPartition],
    found: list[Found],
    encode: Encode,
) -> Later[list[Chunk]]:
    """Answer when appends have brought enough, or when the maximal wait is over."""
    later: Later[list[Chunk]] = Later()
    holds = not query.is_incremental and not any(one.extent for one in found)
    earlier = found if holds else ()
    table = broker.by_id if query.version >= 13 else broker.by_name
    watched = [table[one.key[0]][one.key[1]] for one in wanted]

    def look_again(*, is_over: bool = False) -> None:
        if later.done:
            return
        try:
            news, is_final = _look(broker, query, query.news_among(wanted), earlier)
            if not (is_final or is_over):
                return
            answer = _encoded(query, news, encode)
        except Exception as error:  # noqa: BLE001 - a fault of ours ends this wait, and no other
            leave()
            later.fail(error)
        else:
            leave()
            later.answer(answer)

    def leave() -> None:
        timer.cancel()
        forget()

    forget = broker.readers.wait(watched, look_again)
    timer = broker.timers.after(query.max_wait_ms, lambda: look_again(is_over=True))
    return later
