"""Benchmarks: drive any broker, take the targets in turns, print one honest table."""
