"""Index files: which messages have a key."""
