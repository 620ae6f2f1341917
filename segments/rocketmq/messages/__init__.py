"""A stored message: its fields, its properties, batches of them, and ids."""
