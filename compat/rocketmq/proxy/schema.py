"""
The messages of ``apache.rocketmq.v2``, as classes of the protobuf library.

They live in a pool of their own: a client in the same process brings its own classes of the same
names. Enumerations are plain numbers here, which is the same on the wire; see
:mod:`logstore.compat.rocketmq.proxy.codes`.

A line of the table is a message: ``number name type``. A type with ``?`` knows whether it is
there, ``*`` is a list, ``{}`` a map from text to text, and ``|name`` one of several of which only
one is there.

Source: ``apache/rocketmq/v2/definition.proto`` and ``service.proto`` of rocketmq-apis.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    message_factory,
    timestamp_pb2,
)

_PACKAGE = "apache.rocketmq.v2"
_TABLE = """
Resource: 1 resource_namespace string, 2 name string
Status: 1 code int32, 2 message string
FilterExpression: 1 type int32, 2 expression string
ExponentialBackoff: 1 initial Duration, 2 max Duration, 3 multiplier float
CustomizedBackoff: 1 next Duration*
RetryPolicy: 1 max_attempts int32, 2 exponential_backoff ExponentialBackoff|strategy,
    3 customized_backoff CustomizedBackoff|strategy
SubscriptionEntry: 1 topic Resource, 2 expression FilterExpression
Address: 1 host string, 2 port int32
Endpoints: 1 scheme int32, 2 addresses Address*
Broker: 1 name string, 2 id int32, 3 endpoints Endpoints
MessageQueue: 1 topic Resource, 2 id int32, 3 permission int32, 4 broker Broker,
    5 accept_message_types int32*
Digest: 1 type int32, 2 checksum string
DeadLetterQueue: 1 topic string, 2 message_id string
SystemProperties: 1 tag string?, 2 keys string*, 3 message_id string, 4 body_digest Digest,
    5 body_encoding int32, 6 message_type int32, 7 born_timestamp Timestamp, 8 born_host string,
    9 store_timestamp Timestamp?, 10 store_host string, 11 delivery_timestamp Timestamp?,
    12 receipt_handle string?, 13 queue_id int32, 14 queue_offset int64?,
    15 invisible_duration Duration?, 16 delivery_attempt int32?, 17 message_group string?,
    18 trace_context string?, 19 orphaned_transaction_recovery_duration Duration?,
    20 dead_letter_queue DeadLetterQueue?, 21 lite_topic string?, 22 priority int32?
Message: 1 topic Resource, 2 user_properties {}, 3 system_properties SystemProperties, 4 body bytes
Assignment: 1 message_queue MessageQueue
UA: 1 language int32, 2 version string, 3 platform string, 4 hostname string
Metric: 1 on bool, 2 endpoints Endpoints?
Publishing: 1 topics Resource*, 2 max_body_size int32, 3 validate_message_type bool
Subscription: 1 group Resource?, 2 subscriptions SubscriptionEntry*, 3 fifo bool?,
    4 receive_batch_size int32?, 5 long_polling_timeout Duration?,
    6 lite_subscription_quota int32?, 7 max_lite_topic_size int32?
Settings: 1 client_type int32?, 2 access_point Endpoints?, 3 backoff_policy RetryPolicy?,
    4 request_timeout Duration?, 5 publishing Publishing|pub_sub,
    6 subscription Subscription|pub_sub, 7 user_agent UA, 8 metric Metric, 9 client_properties {}
QueryRouteRequest: 1 topic Resource, 2 endpoints Endpoints
QueryRouteResponse: 1 status Status, 2 message_queues MessageQueue*
SendMessageRequest: 1 messages Message*
SendResultEntry: 1 status Status, 2 message_id string, 3 transaction_id string, 4 offset int64,
    5 recall_handle string
SendMessageResponse: 1 status Status, 2 entries SendResultEntry*
QueryAssignmentRequest: 1 topic Resource, 2 group Resource, 3 endpoints Endpoints
QueryAssignmentResponse: 1 status Status, 2 assignments Assignment*
ReceiveMessageRequest: 1 group Resource, 2 message_queue MessageQueue,
    3 filter_expression FilterExpression, 4 batch_size int32, 5 invisible_duration Duration?,
    6 auto_renew bool, 7 long_polling_timeout Duration?, 8 attempt_id string?
ReceiveMessageResponse: 1 status Status|content, 2 message Message|content,
    3 delivery_timestamp Timestamp|content
AckMessageEntry: 1 message_id string, 2 receipt_handle string, 3 lite_topic string?
AckMessageRequest: 1 group Resource, 2 topic Resource, 3 entries AckMessageEntry*
AckMessageResultEntry: 1 message_id string, 2 receipt_handle string, 3 status Status
AckMessageResponse: 1 status Status, 2 entries AckMessageResultEntry*
ForwardMessageToDeadLetterQueueRequest: 1 group Resource, 2 topic Resource,
    3 receipt_handle string, 4 message_id string, 5 delivery_attempt int32,
    6 max_delivery_attempts int32, 7 lite_topic string?
ForwardMessageToDeadLetterQueueResponse: 1 status Status
HeartbeatRequest: 1 group Resource?, 2 client_type int32
HeartbeatResponse: 1 status Status
EndTransactionRequest: 1 topic Resource, 2 message_id string, 3 transaction_id string,
    4 resolution int32, 5 source int32, 6 trace_context string
EndTransactionResponse: 1 status Status
PrintThreadStackTraceCommand: 1 nonce string
ReconnectEndpointsCommand: 1 nonce string
ThreadStackTrace: 1 nonce string, 2 thread_stack_trace string?
VerifyMessageCommand: 1 nonce string, 2 message Message
VerifyMessageResult: 1 nonce string
RecoverOrphanedTransactionCommand: 1 message Message, 2 transaction_id string
NotifyUnsubscribeLiteCommand: 1 lite_topic string
TelemetryCommand: 1 status Status?, 2 settings Settings|command,
    3 thread_stack_trace ThreadStackTrace|command,
    4 verify_message_result VerifyMessageResult|command,
    5 recover_orphaned_transaction_command RecoverOrphanedTransactionCommand|command,
    6 print_thread_stack_trace_command PrintThreadStackTraceCommand|command,
    7 verify_message_command VerifyMessageCommand|command,
    8 reconnect_endpoints_command ReconnectEndpointsCommand|command,
    9 notify_unsubscribe_lite_command NotifyUnsubscribeLiteCommand|command
NotifyClientTerminationRequest: 1 group Resource?
NotifyClientTerminationResponse: 1 status Status
ChangeInvisibleDurationRequest: 1 group Resource, 2 topic Resource, 3 receipt_handle string,
    4 invisible_duration Duration, 5 message_id string, 6 lite_topic string?, 7 suspend bool?
ChangeInvisibleDurationResponse: 1 status Status, 2 receipt_handle string
OffsetOption: 1 policy int32|offset_type, 2 offset int64|offset_type, 3 tail_n int64|offset_type,
    4 timestamp int64|offset_type
SyncLiteSubscriptionRequest: 1 action int32, 2 topic Resource, 3 group Resource,
    4 lite_topic_set string*, 5 version int64?, 6 offset_option OffsetOption?
SyncLiteSubscriptionResponse: 1 status Status
RecallMessageRequest: 1 topic Resource, 2 recall_handle string
RecallMessageResponse: 1 status Status, 2 message_id string
"""
_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "string": _Field.TYPE_STRING, "bytes": _Field.TYPE_BYTES, "bool": _Field.TYPE_BOOL,
    "int32": _Field.TYPE_INT32, "int64": _Field.TYPE_INT64, "float": _Field.TYPE_FLOAT,
}  # fmt: skip
_WELL_KNOWN = {"Duration": duration_pb2, "Timestamp": timestamp_pb2}


def _add_field(message: descriptor_pb2.DescriptorProto, number: int, name: str, kind: str) -> None:
    field = message.field.add(name=name, number=number, label=_Field.LABEL_OPTIONAL)
    kind, _, choice = kind.partition("|")
    if kind == "{}":
        entry = message.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        _add_field(entry, 1, "key", "string")
        _add_field(entry, 2, "value", "string")
        kind = f"{message.name}.{entry.name}*"
    if kind.endswith("*"):
        field.label = _Field.LABEL_REPEATED
    plain = kind.rstrip("*?")
    if plain in _SCALARS:
        field.type = _SCALARS[plain]
    else:
        field.type = _Field.TYPE_MESSAGE
        package = "google.protobuf" if plain in _WELL_KNOWN else _PACKAGE
        field.type_name = f".{package}.{plain}"
    if kind.endswith("?") and plain in _SCALARS:  # messages know it anyway
        choice = f"_{name}"
        field.proto3_optional = True
        message.oneof_decl.add(name=choice)
    if choice:
        field.oneof_index = [one.name for one in message.oneof_decl].index(choice)


def _read_table() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name="logstore/rocketmq_v2.proto", package=_PACKAGE, syntax="proto3"
    )
    file.dependency.extend(module.DESCRIPTOR.name for module in _WELL_KNOWN.values())
    for line in _TABLE.strip().replace(",\n    ", ", ").splitlines():
        name, _, text = line.partition(": ")
        message = file.message_type.add(name=name)
        fields = [field.split(" ") for field in text.split(", ")]
        # the library wants choices between fields in front of those that are for one field
        for choice in dict.fromkeys(kind.partition("|")[2] for _, _, kind in fields):
            if choice:
                message.oneof_decl.add(name=choice)
        for number, field_name, kind in fields:
            _add_field(message, int(number), field_name, kind)
    return file


def _classes() -> dict[str, Any]:
    pool = descriptor_pool.DescriptorPool()
    for module in _WELL_KNOWN.values():
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    file = _read_table()
    pool.AddSerializedFile(file.SerializeToString())
    return {
        message.name: message_factory.GetMessageClass(
            pool.FindMessageTypeByName(f"{_PACKAGE}.{message.name}")
        )
        for message in file.message_type
    }


#: the class of each message, by its name
MESSAGES = _classes()
