"""Replication: the byte stream between master and slave, as state machines without sockets."""
