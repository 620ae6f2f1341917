"""RocketMQ's store: commit log, consume queues, index files, as Apache RocketMQ keeps them."""
