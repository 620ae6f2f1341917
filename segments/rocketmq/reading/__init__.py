"""How messages are found: by queue offset, filter, time, key and place."""
