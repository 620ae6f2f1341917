"""Who administrates a broker of a life: topics come and go, and what is past its time goes."""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

from logstore.compat.rocketmq.wire.codes import RequestCode
from tests.compat.rocketmq.lives.consumers import CONSUMERS
from tests.compat.rocketmq.lives.ordered_poppers import OrderedPopper
from tests.compat.rocketmq.lives.poppers import Popper
from tests.compat.rocketmq.lives.world import World

_TOPICS_MAX = 5
#: what the name of a topic begins with whose messages come again to those who pop
_RETRY = re.compile(r"^%RETRY%[a-z]+[_+]")


@attrs.define
class Administrator:
    """Does what mqadmin does, now and then."""

    world: World
    #: by group
    poppers: Mapping[str, Popper | OrderedPopper]
    _topic_count: int = 0

    def create_topic(self) -> None:
        """Make a topic, often one of a name that was there before."""
        chronicle, dice = self.world.chronicle, self.world.dice
        if len(chronicle.topics()) >= _TOPICS_MAX:
            return
        count, is_batch = dice.randrange(1, 4), dice.random() < 0.2
        deleted = sorted(chronicle.deleted)
        if deleted and dice.random() < 0.7:
            name = dice.choice(deleted)
            is_batch = name in chronicle.batch_topics
        else:
            self._topic_count += 1
            name = f"t{self._topic_count}"
        fields = {
            "topic": name, "defaultTopic": "TBW102", "readQueueNums": count,
            "writeQueueNums": count, "perm": 6, "topicFilterType": "SINGLE_TAG",
            "order": "false", "attributes": "+queue.type=BatchCQ" if is_batch else "",
        }  # fmt: skip
        chronicle.make_anew(name)
        answer = self.world.peer().ask(RequestCode.UPDATE_AND_CREATE_TOPIC, fields)
        if not answer.code:
            chronicle.add_topic(name, count, is_batch=is_batch)

    def delete_topic(self) -> None:
        """Delete a topic, but for the last one."""
        chronicle = self.world.chronicle
        topics = chronicle.topics()
        if len(topics) < 2:
            return
        name = self.world.dice.choice(topics)
        chronicle.drop_topic(name)
        answer = self.world.peer().ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": name})
        if not answer.code:
            chronicle.deleted.add(name)

    def delete_group(self) -> None:
        """Delete a group, mostly with what it has committed: those that pop begin once more."""
        world = self.world
        group = world.dice.choice((*CONSUMERS, *self.poppers))
        cleans = world.dice.random() < 0.7
        if group in self.poppers:
            self.poppers[group].forget()
        now_ms = world.broker.host.clock.monotonic_ms()
        truths = [one for key, one in world.chronicle.offsets.items() if key[0] == group]
        told = (now_ms, -1)
        if cleans:
            for truth in truths:
                truth.told.append(told)
        fields = {"groupName": group, "cleanOffset": str(cleans).lower()}
        answer = world.peer().ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, fields)
        if answer.code and cleans:
            for truth in truths:
                truth.told.remove(told)

    def clean_log(self) -> None:
        """Have files go that are past their time (mqadmin deleteExpiredCommitLog)."""
        self.world.peer().ask(RequestCode.DELETE_EXPIRED_COMMITLOG)

    def clean_queues(self) -> None:
        """
        Have queues go whose messages are all gone (mqadmin cleanExpiredCQ): they begin anew.

        At 0, while groups stay where they were: they pass by what comes next, as with Java.
        """
        for queue in self.world.broker.store.consume_queues:
            if 0 < queue.max_queue_offset <= queue.min_queue_offset:
                topic = _RETRY.sub("", queue.topic)
                self.world.chronicle.emptied.add(topic)
        self.world.peer().ask(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE)
