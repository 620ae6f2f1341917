"""Static topics: logic queues that stay as they are while their messages move to other brokers."""
