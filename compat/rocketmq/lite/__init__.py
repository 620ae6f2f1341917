"""Lite topics: light queues below one topic, subscribed to one by one and popped in order (5.5)."""
