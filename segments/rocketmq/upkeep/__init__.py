"""What a running store does by the clock: syncs, tables, cleaning, statistics."""
