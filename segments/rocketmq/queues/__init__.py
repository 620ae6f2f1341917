"""Consume queues: where in the commit log the messages of one queue stand."""
