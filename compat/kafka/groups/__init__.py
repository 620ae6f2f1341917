"""
Consumer groups: who shares the work of a group, and how far each has come.

A sans-IO state machine. :class:`~logstore.compat.kafka.groups.coordinator.GroupCoordinator` is the
door; it knows all groups, and a :class:`~logstore.compat.kafka.groups.group.Group` is one of them.
Time comes from :class:`~logstore.compat.waiting.Timers`, chance from the host's generator, and what
must survive a restart goes through the port
:class:`~logstore.compat.kafka.groups.offsets_log.OffsetsLog`. Nothing here knows a socket or a
message class of the wire.

Source: ``GroupMetadataManager``, ``ClassicGroup`` and ``OffsetMetadataManager`` of Kafka's module
``group-coordinator``.
"""
