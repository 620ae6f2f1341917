"""
SEND_MESSAGE: a message, its fields named by words; older clients and those in C++ send it so.

A batch is marked by ``batch=true``. What C++ marks by ``1`` is, to a real broker and to its
consumers, one message whose body is the whole batch; so it is here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.compat.rocketmq.sending.sending import answer_send

if TYPE_CHECKING:
    from logstore.compat.rocketmq.broker import Broker
    from logstore.compat.rocketmq.connection import Channel
    from logstore.compat.rocketmq.wire.remoting import Answer, Command
    from logstore.compat.waiting import Later


#: the letters of SEND_MESSAGE_V2 by the words that stand here
LETTERS = {
    "producerGroup": "a",
    "topic": "b",
    "defaultTopic": "c",
    "defaultTopicQueueNums": "d",
    "queueId": "e",
    "sysFlag": "f",
    "bornTimestamp": "g",
    "flag": "h",
    "properties": "i",
    "reconsumeTimes": "j",
    "unitMode": "k",
    "maxReconsumeTimes": "l",
    "batch": "m",
    "bname": "n",
}


def handle_raw(broker: Broker, channel: Channel, request: Command) -> Answer | Later[Answer] | None:
    """Serve one request."""
    fields = {LETTERS[name]: value for name, value in request.ext_fields.items() if name in LETTERS}
    return answer_send(broker, channel, request, fields)
