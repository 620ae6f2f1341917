"""
Consumer groups of KIP-848: the coordinator itself decides who reads what.

One request does it all, the heartbeat. It joins, tells what a member wants and still has, and is
answered with what the member may read now. Three numbers move on their own:

* the group's epoch grows whenever members, subscriptions or topics change;
* the assignment's epoch follows when an assignor has worked out who shall have what: the target;
* each member's epoch follows when it has given back what it must: a partition is given to its new
  owner once the old one has let go of it, and nobody else has to stop for that.

Everything that a request changes is a list of records. They are written to the log first and then
applied to the group, by the code that also replays them at a start, so that what is in memory is
always what is on disk.

Source: ``GroupMetadataManager.consumerGroupHeartbeat`` and package ``modern`` of Kafka's module
``group-coordinator``.
"""
