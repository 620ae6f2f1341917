"""The Kafka protocol, without sockets."""
