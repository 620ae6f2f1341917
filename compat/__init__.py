"""The foreign contracts that the store honours: protocols of the real brokers, and Spark."""
