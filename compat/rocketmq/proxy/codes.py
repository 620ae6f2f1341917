"""Numbers of ``apache.rocketmq.v2``: what its enumerations are called."""

from __future__ import annotations

from enum import IntEnum


class Code(IntEnum):
    """What became of a request."""

    OK = 20000
    MULTIPLE_RESULTS = 30000
    BAD_REQUEST = 40000
    ILLEGAL_TOPIC = 40002
    ILLEGAL_CONSUMER_GROUP = 40003
    ILLEGAL_MESSAGE_TAG = 40004
    ILLEGAL_MESSAGE_KEY = 40005
    ILLEGAL_MESSAGE_GROUP = 40006
    ILLEGAL_MESSAGE_PROPERTY_KEY = 40007
    INVALID_TRANSACTION_ID = 40008
    ILLEGAL_MESSAGE_ID = 40009
    ILLEGAL_FILTER_EXPRESSION = 40010
    ILLEGAL_INVISIBLE_TIME = 40011
    ILLEGAL_DELIVERY_TIME = 40012
    INVALID_RECEIPT_HANDLE = 40013
    MESSAGE_PROPERTY_CONFLICT_WITH_TYPE = 40014
    UNRECOGNIZED_CLIENT_TYPE = 40015
    MESSAGE_CORRUPTED = 40016
    CLIENT_ID_REQUIRED = 40017
    ILLEGAL_POLLING_TIME = 40018
    ILLEGAL_LITE_TOPIC = 40020
    UNAUTHORIZED = 40100
    FORBIDDEN = 40300
    MESSAGE_NOT_FOUND = 40401
    TOPIC_NOT_FOUND = 40402
    CONSUMER_GROUP_NOT_FOUND = 40403
    MESSAGE_BODY_TOO_LARGE = 41301
    MESSAGE_BODY_EMPTY = 41302
    TOO_MANY_REQUESTS = 42900
    LITE_TOPIC_QUOTA_EXCEEDED = 42901
    LITE_SUBSCRIPTION_QUOTA_EXCEEDED = 42902
    MESSAGE_PROPERTIES_TOO_LARGE = 43101
    INTERNAL_SERVER_ERROR = 50001
    HA_NOT_AVAILABLE = 50002
    NOT_IMPLEMENTED = 50100
    PROXY_TIMEOUT = 50400
    MASTER_PERSISTENCE_TIMEOUT = 50401
    SLAVE_PERSISTENCE_TIMEOUT = 50402
    VERIFY_FIFO_MESSAGE_UNSUPPORTED = 50502
    FAILED_TO_CONSUME_MESSAGE = 60000


class ClientType(IntEnum):
    """What a client does."""

    PRODUCER = 1
    PUSH_CONSUMER = 2
    SIMPLE_CONSUMER = 3
    LITE_PUSH_CONSUMER = 5


#: consumers that are served, and what else clients may say they are, by Java's names
CONSUMERS = (
    ClientType.PUSH_CONSUMER,
    ClientType.SIMPLE_CONSUMER,
    ClientType.LITE_PUSH_CONSUMER,
)
_CLIENT_NAMES = {
    **{int(kind): kind.name for kind in ClientType},
    0: "CLIENT_TYPE_UNSPECIFIED",
    4: "PULL_CONSUMER",
    6: "LITE_SIMPLE_CONSUMER",
}
UNKNOWN_CLIENT = "UNRECOGNIZED"


def client_type_name(number: int) -> str:
    """Return what Java calls a kind of client."""
    return _CLIENT_NAMES.get(number, UNKNOWN_CLIENT)


class MessageType(IntEnum):
    """What is special about a message, or about those of a topic."""

    UNSPECIFIED = 0
    NORMAL = 1
    FIFO = 2
    DELAY = 3
    TRANSACTION = 4
    LITE = 5
    PRIORITY = 6


class Permission(IntEnum):
    """What may be done with a queue."""

    NONE = 1
    READ = 2
    WRITE = 3
    READ_WRITE = 4


class AddressScheme(IntEnum):
    """What a host is called by."""

    IPV4 = 1
    IPV6 = 2
    DOMAIN_NAME = 3


class Resolution(IntEnum):
    """How a transaction ends."""

    UNSPECIFIED = 0
    COMMIT = 1
    ROLLBACK = 2


TAG, SQL = 1, 2
MD5 = 2
IDENTITY, GZIP = 1, 2
SOURCE_SERVER_CHECK = 2
