"""What stands in ``config/*.json``: topics, groups, offsets, filters, read and written as Java."""
