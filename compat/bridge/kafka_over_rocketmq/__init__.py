"""Kafka's protocol over RocketMQ's layout."""
