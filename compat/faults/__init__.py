"""Faults that a test asks a broker for: requests that fail, are late or lost."""
