"""A store directory opened: lock, checkpoint, loading, recovery."""
