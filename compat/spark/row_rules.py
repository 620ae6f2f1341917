"""
What rows must be so that a layout can hold them: said before anything is written.

Columns are checked where a write begins, values where a task puts them beside the store; what a
rule of the store refuses later undoes the job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from logstore.compat.kafka.topics import names as kafka_names
from logstore.compat.rocketmq.topics import names as rocketmq_names
from logstore.compat.spark.columns import COLUMN_TYPES
from logstore.compat.spark.option_values import OptionError
from logstore.errors import RejectedAppendError
from logstore.partition import Record
from logstore.segments.rocketmq.messages.properties import PROPERTIES_SIZE_BYTES_MAX
from logstore.segments.rocketmq.queue import properties_text_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

#: what a row may have, and of which types; all but `value` may be left out
WRITE_COLUMNS = {
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "topic": ("string",),
    "partition": ("int", "bigint", "smallint", "tinyint"),
    "timestamp": ("timestamp", "timestamp_ntz"),
    "headers": ("array<struct<key:string,value:binary>>",),
}


def check_columns(schema: StructType, topic: str | None) -> None:
    """
    Check the columns of what is to be written; `topic` is the option, for rows that have none.

    What the reader gives is taken, too: its other columns are passed over, offsets are made anew.

    Raises:
        OptionError: a column is unknown, missing, or of a type that is not written.

    """
    unknown = [name for name in schema.names if name not in {*WRITE_COLUMNS, *COLUMN_TYPES}]
    if unknown or "value" not in schema.names:
        told = f"must be value and any of: {', '.join(WRITE_COLUMNS)}"
        raise OptionError("columns", ", ".join(schema.names), told)
    for field in schema.fields:
        found = field.dataType.simpleString()
        allowed = WRITE_COLUMNS.get(field.name)
        is_passed_over = field.name == "topic" and topic is not None
        if allowed is not None and found not in allowed and not is_passed_over:
            raise OptionError("columns", f"{field.name} {found}", f"must be {' or '.join(allowed)}")
    if topic is None and "topic" not in schema.names:
        raise OptionError("topic", None, "must be given where rows have no column topic")


@attrs.frozen
class RowRules:
    """The rules of one layout; `body_bytes_max` is RocketMQ's ``maxMessageSize``."""

    layout: str
    body_bytes_max: int

    def check_topic(self, topic: str) -> None:
        """
        Check the name of a topic.

        Raises:
            OptionError: no topic can be called that.

        """
        is_kafka = self.layout == "kafka"
        flaw = kafka_names.flaw_of(topic) if is_kafka else rocketmq_names.flaw_of_topic(topic)
        if flaw is not None:
            raise OptionError("topic", topic, f"can be no topic: {flaw}")

    def check(self, record: Record) -> None:
        """
        Check what a record says.

        Raises:
            RejectedAppendError: the layout cannot hold it.

        """
        if self.layout == "kafka":
            return
        self.check_properties_bytes(len(properties_text_of(record)))
        self.check_body_bytes(len(record.value or b""))

    def check_properties_bytes(self, text_bytes: int) -> None:
        """
        Check how long properties are.

        Raises:
            RejectedAppendError: no message holds so many.

        """
        if text_bytes > PROPERTIES_SIZE_BYTES_MAX:
            raise RejectedAppendError(
                f"key and headers take {text_bytes} bytes as properties, "
                f"{PROPERTIES_SIZE_BYTES_MAX} are allowed"
            )

    def check_body_bytes(self, body_bytes: int) -> None:
        """
        Check how long a value is.

        Raises:
            RejectedAppendError: it is longer than the store takes them.

        """
        if body_bytes > self.body_bytes_max:
            raise RejectedAppendError(
                f"a value has {body_bytes} bytes, {self.body_bytes_max} are allowed "
                "(maxMessageSize)"
            )
