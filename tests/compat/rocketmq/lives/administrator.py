"""Who administrates a broker of a life: topics come and go, and what is past its time goes."""

from __future__ import annotations

import attrs

from logstore.compat.rocketmq.wire.codes import RequestCode
from tests.compat.rocketmq.lives.world import World

_TOPICS_MAX = 5


@attrs.define
class Administrator:
    """Does what mqadmin does, now and then."""

    world: World
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

    def clean_log(self) -> None:
        """Have files go that are past their time (mqadmin deleteExpiredCommitLog)."""
        self.world.peer().ask(RequestCode.DELETE_EXPIRED_COMMITLOG)

    def clean_queues(self) -> None:
        """Have queues go whose messages are all gone (mqadmin cleanExpiredCQ): they begin anew."""
        self.world.peer().ask(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE)
