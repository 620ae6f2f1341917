"""
Classic groups that become consumer groups while they work, and the other way round.

A group of the classic protocol is upgraded by the first member that joins it with the protocol of
KIP-848. From then on it is a consumer group in which members of both protocols live together: the
coordinator assigns the partitions, and members of the classic protocol are told so by JoinGroup,
SyncGroup and Heartbeat, each on its own, without waiting for the others. Once all that are left
speak the classic protocol the group is downgraded, and they work out their assignment themselves
again. So consumers can be changed over one after the other, and back.

Either way tombstones of the one kind and records of the other are one write: whatever happens, a
restart finds a whole group.

Source: ``GroupMetadataManager.convertToConsumerGroup``, ``convertToClassicGroup`` and what is named
``...ToConsumerGroup`` there.
"""
