"""
What groups of KIP-848, KIP-932 and KIP-1071 have in common: the coordinator assigns.

==================  ===============================================================================
where               what
==================  ===============================================================================
``group``           a group: its members, its epochs and what everybody shall have
``member``          one of its members, and the epoch in which it is
``modern_groups``   the groups of a kind: loaded, written, and members removed whose time is up
``records``         what they are made of in ``__consumer_offsets``
``cluster``         the topics and settings that they look at
``assignor_spec``   what those are asked who assign partitions
``describing``      how administrators see them
==================  ===============================================================================

A kind of group adds its own: :mod:`~logstore.compat.kafka.groups.consumer` (a partition has one
owner, who must let go of it), :mod:`~logstore.compat.kafka.groups.share` (what was read is kept
record by record), :mod:`~logstore.compat.kafka.groups.streams` (tasks of a topology).

Source: package ``modern`` of Kafka's module ``group-coordinator``.
"""
