"""All groups of a broker, and how far each has come: the door to everything about groups."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from logstore.compat.kafka.error_codes import ErrorCode
from logstore.compat.kafka.groups.admission import admit
from logstore.compat.kafka.groups.commit import Commit
from logstore.compat.kafka.groups.committed_offsets import CommittedOffsets
from logstore.compat.kafka.groups.config import GroupConfig
from logstore.compat.kafka.groups.exchange import (
    NO_MEMBER_ID,
    DescribedGroup,
    Join,
    Joined,
    Left,
    ListedGroup,
    MemberIdentity,
    Sync,
    Synced,
)
from logstore.compat.kafka.groups.group import Group
from logstore.compat.kafka.groups.offset_table import TopicPartition, offset_record, offset_records
from logstore.compat.kafka.groups.offsets_log import (
    NO_PRODUCER_ID,
    CommittedOffset,
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetsLog,
    ReplayedRecord,
    TransactionEnd,
    decode_group_metadata_value,
    decode_key,
    decode_offset_commit_value,
)
from logstore.compat.kafka.groups.other_groups import OtherGroups
from logstore.compat.kafka.groups.surroundings import Surroundings
from logstore.compat.kafka.java_trim import trimmed
from logstore.compat.waiting import Later, Timer, Timers
from logstore.host import Host

if TYPE_CHECKING:
    from logstore.compat.kafka.configs.settings import BrokerSettings
    from logstore.compat.kafka.groups.consumer.consumer_groups import ConsumerGroups
    from logstore.compat.kafka.groups.modern.cluster import Cluster
    from logstore.compat.kafka.groups.other_groups import OtherGroup
    from logstore.compat.kafka.groups.share.cluster import ShareCluster
    from logstore.compat.kafka.groups.share.share_groups import ShareGroups
    from logstore.compat.kafka.groups.streams.streams_groups import StreamsGroups
    from logstore.compat.kafka.transactions.markers import Marker


_NO_OFFSETS: Mapping[TopicPartition, CommittedOffset] = {}


class GroupCoordinator:
    """
    Owns all groups and their offsets; a test broker has one, a cluster would have one a partition.

    It starts out loading: :meth:`load` reads the log, and only then requests are served. Every
    method is one step that ends in a consistent state; :class:`Later` answers are given at the end
    of a step. `groups` are the classic ones, `others` has the others.
    Source: ``GroupCoordinatorService`` and ``GroupCoordinatorShard``.
    """

    def __init__(
        self,
        config: GroupConfig,
        timers: Timers,
        rng: random.Random,
        log: OffsetsLog,
        cluster: Cluster | None = None,
        share_cluster: Callable[[], ShareCluster] | None = None,
    ) -> None:
        self.groups: dict[str, Group] = {}
        #: what every request is refused with: NONE while the coordinator serves
        self.refusal = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        self.surroundings = Surroundings(config, timers, rng, log)
        self.others = OtherGroups(
            self.surroundings, cluster, share_cluster, self.groups, lambda: self.refusal
        )
        self.consumer_groups = self.others.consumer_groups
        self.share_groups = self.others.share_groups
        self._offsets = CommittedOffsets()
        self._expiry_timer: Timer | None = None

    @property
    def consumers(self) -> ConsumerGroups:
        """Who answers for the groups of KIP-848."""
        return self.others.consumers

    @property
    def shares(self) -> ShareGroups:
        """Who answers for the share groups of KIP-932."""
        return self.others.shares

    @property
    def streams(self) -> StreamsGroups:
        """Who answers for the streams groups of KIP-1071."""
        return self.others.streams

    # coming and going

    @classmethod
    def from_config(
        cls,
        host: Host,
        timers: Timers,
        settings: BrokerSettings,
        log: OffsetsLog,
        cluster: Cluster,
        share_cluster: Callable[[], ShareCluster],
    ) -> GroupCoordinator:
        """Return a coordinator that serves what `log` holds, with a broker's settings."""
        coordinator = cls(GroupConfig.of(settings), timers, host.rng, log, cluster, share_cluster)
        coordinator.load()
        return coordinator

    def load(self) -> None:
        """
        Take over what the log holds, members included: they have one session time to come back.

        Raises:
            GroupRecordError: a record cannot be read.

        """
        for entry in self.surroundings.log.replay():
            if isinstance(entry, TransactionEnd):
                self._end(entry)
            else:
                self._replay(entry)
        self.refusal = ErrorCode.NONE
        for group in list(self.groups.values()):
            group.rebalance.start_sessions()
        self.others.start_timers()
        self._expire_later()
        self.surroundings.answers.give()

    def close(self) -> None:
        """Give all groups up and tell everyone who waits to look for another coordinator."""
        self.refusal = ErrorCode.NOT_COORDINATOR
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
        for group in self.groups.values():
            group.rebalance.die(ErrorCode.NOT_COORDINATOR)
        self.groups.clear()
        self.others.close()
        self._offsets.clear()
        self.surroundings.answers.give()

    # membership

    def join(self, join: Join) -> Later[Joined]:
        """Let a member join; answered once the next generation stands."""
        later = Later[Joined]()
        error = self._join_error(join)
        group = None if error else self.groups.get(join.group_id)
        if error is ErrorCode.NONE and group is None:
            if self.others.refuses_classic(join.group_id):
                later.answer(self.others.join(join))
                return later
            if join.member_id == NO_MEMBER_ID:
                group, error = self._create(join.group_id)
            else:
                error = ErrorCode.UNKNOWN_MEMBER_ID
        if group is None:
            later.answer(Joined(error, join.member_id))
        else:
            admit(group, join, later)
            self.surroundings.answers.give()
        return later

    def sync(self, sync: Sync) -> Later[Synced]:
        """Hand a member its share; answered once the leader has shared out."""
        later = Later[Synced]()
        error = self._refusal_for(sync.group_id)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # The rebalance that it was in is lost; it must join again, not look elsewhere.
            error = ErrorCode.REBALANCE_IN_PROGRESS
        group = self.groups.get(sync.group_id)
        if error is ErrorCode.NONE and group is not None:
            group.rebalance.sync(sync, later)
            self.surroundings.answers.give()
        elif error is ErrorCode.NONE and sync.group_id in self.consumer_groups:
            later.answer(self.consumers.classic_members.sync(sync))
        else:
            later.answer(Synced(error or ErrorCode.UNKNOWN_MEMBER_ID))
        return later

    def heartbeat(
        self, group_id: str, member_id: str, group_instance_id: str | None, generation_id: int
    ) -> ErrorCode:
        """Note that a member is alive; tell it whether it must join again."""
        if error := self._refusal_for(group_id):
            is_loading = error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            return ErrorCode.NONE if is_loading else error
        alive = (member_id, group_instance_id, generation_id)
        if group := self.groups.get(group_id):
            return group.rebalance.heartbeat(*alive)
        if group_id in self.consumer_groups:
            return self.consumers.classic_members.heartbeat(group_id, *alive)
        return ErrorCode.UNKNOWN_MEMBER_ID

    def leave(
        self, group_id: str, identities: Sequence[MemberIdentity]
    ) -> tuple[ErrorCode, list[Left]]:
        """Remove members; the error is about the whole request, each member has its own."""
        if error := self._refusal_for(group_id):
            return error, []
        if group := self.groups.get(group_id):
            left = group.rebalance.leave(identities)
        elif group_id in self.consumer_groups:
            left = self.consumers.leave(group_id, identities)
        else:
            left = [Left(one, ErrorCode.UNKNOWN_MEMBER_ID) for one in identities]
        self.surroundings.answers.give()
        return error, left

    # offsets

    def commit_offsets(self, commit: Commit) -> dict[TopicPartition, ErrorCode]:
        """
        Keep offsets, in the log first; return what became of each.

        A commit to an unknown group that claims no generation creates the group of a simple
        consumer; one that claims a generation gets GROUP_ID_NOT_FOUND for each offset, in a
        transaction ILLEGAL_GENERATION.
        """
        if error := self._commit_error(commit):
            return dict.fromkeys(commit.offsets, error)
        if (group := self.groups.get(commit.group_id)) and commit.producer is None:
            group.rebalance.note_commit(commit.member_id)
        config, versions = self.surroundings.config, self.surroundings.versions
        kept = commit.kept(config.offset_metadata_max_size)
        kept = versions.dated(kept, config.offsets_retention_ms)
        error = self.surroundings.write(
            commit.group_id,
            offset_records(commit.group_id, kept, versions.offset),
            partial(self._take_over, commit, kept),
            commit.producer,
        )
        became = dict.fromkeys(commit.offsets, error)
        if len(kept) < len(became):
            too_large = became.keys() - kept.keys()
            became |= dict.fromkeys(too_large, ErrorCode.OFFSET_METADATA_TOO_LARGE)
        return became

    def _take_over(self, commit: Commit, kept: Mapping[TopicPartition, CommittedOffset]) -> None:
        self._know(commit.group_id)  # also where nothing of it is fit to be kept
        if commit.producer is None:
            self._offsets.put_all(commit.group_id, kept)
            return
        partition = self.surroundings.log.partition_of(commit.group_id)
        for of, committed in kept.items():
            key = OffsetCommitKey(commit.group_id, *of)
            self._offsets.put_pending(partition, commit.producer.producer_id, key, committed)

    def end_transaction(self, partition: int, marker: Marker) -> None:
        """
        Let a producer's offsets in one partition of the log count, or drop them.

        Raises:
            InvalidProducerEpochError, TransactionCoordinatorFencedError: a newer producer or
                coordinator has been there.
            LogStoreError, OSError: the marker was not written.

        """
        self.surroundings.log.append_marker(partition, marker)
        self._end(TransactionEnd(partition, marker.producer_id, marker.is_commit))

    def committed(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        """Return all that a group has committed and no transaction holds back."""
        return self._offsets.of_group(group_id)

    def unstable(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> frozenset[TopicPartition]:
        """Return the partitions whose offset depends on a transaction that is still open."""
        if not self._offsets.holds_any(group_id):
            return frozenset()
        return frozenset(one for one in partitions if self._offsets.is_held(group_id, one))

    def fetch_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None
    ) -> tuple[ErrorCode, dict[TopicPartition, CommittedOffset | None]]:
        """
        Return what a group has committed in these partitions, or (for None) in all it knows.

        None stands for no offset. Offsets of open transactions are not among them; who wants to
        wait for those asks which are :meth:`unstable`.
        """
        if self.refusal is not ErrorCode.NONE:
            return self.refusal, {}
        offsets = self._offsets.of_group(group_id) if self._any_group(group_id) else _NO_OFFSETS
        wanted = offsets if partitions is None else partitions
        return ErrorCode.NONE, {partition: offsets.get(partition) for partition in wanted}

    def delete_offsets(
        self, group_id: str, partitions: Collection[TopicPartition]
    ) -> tuple[ErrorCode, dict[TopicPartition, ErrorCode]]:
        """Forget offsets in topics that no member reads; the error is about the whole request."""
        error = self._refusal_for(group_id)
        group = self._any_group(group_id)
        if error is ErrorCode.NONE and group is None:
            error = ErrorCode.GROUP_ID_NOT_FOUND
        if error is not ErrorCode.NONE or group is None:
            return error, {}
        if not group.is_empty and not group.is_of_consumers:
            return ErrorCode.NON_EMPTY_GROUP, {}
        free = [one for one in partitions if not group.is_subscribed_to(one[0])]
        error = self._forget(group_id, self._offsets.keys(group_id, free))
        if error is not ErrorCode.NONE:
            return error, {}
        codes = dict.fromkeys(partitions, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
        return error, codes | dict.fromkeys(free, ErrorCode.NONE)

    def forget_partitions(self, topic: str, partitions: Iterable[int]) -> None:
        """Forget what all groups have committed in partitions that do not exist any more."""
        for group_id, keys in self._offsets.keys_of_topic(topic, partitions).items():
            self._forget(group_id, keys)

    def partition_of(self, group_id: str) -> int:
        """Return the number of the partition of the log that the group lives in."""
        return self.surroundings.log.partition_of(group_id)

    # administration

    def describe(self, group_id: str) -> DescribedGroup:
        """Return a group as it stands; one that is not there is dead and GROUP_ID_NOT_FOUND."""
        if self.refusal is not ErrorCode.NONE:
            return DescribedGroup(group_id, self.refusal)
        group = self.groups.get(group_id)
        unknown = DescribedGroup(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
        return unknown if group is None else group.described()

    def list_groups(
        self, states: Collection[str] = (), types: Collection[str] = ()
    ) -> tuple[ErrorCode, list[ListedGroup]]:
        """
        Return all groups in these states and of these types, however they are capitalised.

        What stands around a state's name does not count; around a type's it does.
        """
        if self.refusal is not ErrorCode.NONE:
            return self.refusal, []
        wanted_states = {trimmed(state.lower()) for state in states}
        wanted_types = {group_type.lower() for group_type in types}
        lines = [one.listed() for one in (*self._all_groups(), *self.share_groups.values())]
        return ErrorCode.NONE, [one for one in lines if one.is_among(wanted_states, wanted_types)]

    def delete_group(self, group_id: str) -> ErrorCode:
        """Remove an empty group and its offsets."""
        if self.refusal is not ErrorCode.NONE:
            return self.refusal
        if group_id in self.share_groups:
            return self.shares.delete(group_id)
        group = self._any_group(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if not group.is_empty:
            return ErrorCode.NON_EMPTY_GROUP
        return self._remove(group, self._offsets.keys(group_id))

    def expire(self) -> None:
        """Forget offsets past their retention time, and empty groups that have none left."""
        config = self.surroundings.config
        now_ms = self.surroundings.now_ms()
        for group in self._all_groups():
            expired, is_all = self._offsets.expired_keys(group, now_ms, config.offsets_retention_ms)
            if is_all and group.is_idle:
                self._remove(group, expired)
            else:
                self._forget(group.group_id, expired)
        self._expire_later()

    # what the steps are made of

    def _any_group(self, group_id: str) -> Group | OtherGroup | None:
        return self.groups.get(group_id) or self.others.get(group_id)

    def _all_groups(self) -> list[Group | OtherGroup]:
        return [*self.groups.values(), *self.others.all()]

    def _replay(self, entry: ReplayedRecord) -> None:
        about, value = decode_key(entry.key), entry.value
        if about is None:
            self.others.replay(entry.key, value)
        elif isinstance(about, GroupMetadataKey):
            self.groups.pop(about.group_id, None)
            if value is not None:
                kept = decode_group_metadata_value(value)
                group = Group.restored(about.group_id, kept, self.surroundings)
                self.groups[about.group_id] = group
        elif value is None:
            self._offsets.drop(about)
        elif entry.producer_id == NO_PRODUCER_ID:
            self._put(about, decode_offset_commit_value(value))
        else:
            committed = decode_offset_commit_value(value)
            self._put_pending(entry.partition, entry.producer_id, about, committed)

    def _refusal_for(self, group_id: str) -> ErrorCode:
        return self.refusal if group_id else ErrorCode.INVALID_GROUP_ID

    def _join_error(self, join: Join) -> ErrorCode:
        if not join.group_id:
            return ErrorCode.INVALID_GROUP_ID
        if not self.surroundings.config.takes_session(join.session_timeout_ms):
            return ErrorCode.INVALID_SESSION_TIMEOUT
        return self.refusal

    def _create(self, group_id: str) -> tuple[Group | None, ErrorCode]:
        group = Group(group_id, self.surroundings)
        rival = self.others.get(group_id)
        dead = [] if rival is None else rival.tombstones()

        def adopt() -> None:
            self.others.forget(group_id)
            self.groups[group_id] = group

        error = self.surroundings.write(group_id, [*dead, group.record({})], adopt)
        return (None, error) if error else (group, error)

    def _put(self, key: OffsetCommitKey, committed: CommittedOffset) -> None:
        self._offsets.put(key, committed)
        self._know(key.group_id)

    def _put_pending(
        self, partition: int, producer_id: int, key: OffsetCommitKey, committed: CommittedOffset
    ) -> None:
        self._offsets.put_pending(partition, producer_id, key, committed)
        self._know(key.group_id)

    def _know(self, group_id: str) -> None:
        if self._any_group(group_id) is None:
            # The group of a simple consumer: it has offsets, and no record of its own.
            self.groups[group_id] = Group(group_id, self.surroundings)

    def _end(self, end: TransactionEnd) -> None:
        self._offsets.end(end)

    def _commit_error(self, commit: Commit) -> ErrorCode:
        if self.refusal is not ErrorCode.NONE:
            return self.refusal
        group = self.groups.get(commit.group_id)
        is_transactional = commit.producer is not None
        if group is not None:
            return group.commit_error(
                commit.member_id, commit.group_instance_id, commit.generation_id,
                is_transactional=is_transactional,
            )  # fmt: skip
        if self.others.has(commit.group_id):
            return self.others.commit_error(commit)
        if commit.generation_id < 0:
            return ErrorCode.NONE
        illegal = ErrorCode.ILLEGAL_GENERATION
        return illegal if is_transactional else ErrorCode.GROUP_ID_NOT_FOUND

    def _forget(self, group_id: str, keys: Sequence[OffsetCommitKey]) -> ErrorCode:
        records = [offset_record(key, None) for key in keys]
        return self.surroundings.write(group_id, records, partial(self._drop, keys))

    def _drop(self, keys: Sequence[OffsetCommitKey]) -> None:
        for key in keys:
            self._offsets.drop(key)

    def _remove(self, group: Group | OtherGroup, keys: Sequence[OffsetCommitKey]) -> ErrorCode:
        records = [offset_record(key, None) for key in keys]

        def let_go() -> None:
            self._drop(keys)
            if isinstance(group, Group):
                del self.groups[group.group_id]
                group.rebalance.die(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            else:
                self.others.forget(group.group_id)

        return self.surroundings.write(group.group_id, [*records, *group.tombstones()], let_go)

    def _expire_later(self) -> None:
        interval_ms = self.surroundings.config.offsets_retention_check_interval_ms
        self._expiry_timer = self.surroundings.after(interval_ms, self.expire)
