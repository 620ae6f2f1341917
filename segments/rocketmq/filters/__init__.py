"""Filters of messages by expression: SQL92, and the bloom filter that saves reading messages."""
