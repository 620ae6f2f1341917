"""Files of one size, one behind the other: RocketMQ's mapped files."""
