"""RocketMQ's protocol over Kafka's layout."""
