"""Kafka's layout on disk; FORMAT.md beside this file is its grammar."""
