"""
Streams groups of KIP-1071: the coordinator knows what a Kafka Streams application does.

A member tells its topology when it joins: subtopologies, each with the topics that it reads and the
internal topics that it needs. The coordinator

* decides how many partitions internal topics have (:mod:`.topics`), and has them made;
* works out which member runs which task, that is: a subtopology over one partition
  (:mod:`.assignors`);
* leads every member to its tasks, one heartbeat at a time, as in groups of KIP-848, whose three
  epochs it has as well. Active tasks move from process to process; a process never has two of the
  kinds active, standby and warm-up of one task.

A heartbeat is answered with statuses: what keeps the application from running is no error.

Source: ``GroupMetadataManager.streamsGroupHeartbeat`` and package ``streams`` of Kafka's module
``group-coordinator``.
"""
