"""Looking into, checking and mending stores of RocketMQ's layout."""
