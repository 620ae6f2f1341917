"""RocketMQ's name server: which broker serves which topic, kept in memory."""
