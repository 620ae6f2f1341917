"""How Kafka's requests fail where a test asks for it."""
