"""Java's settings by name, type and default, and what differs between its releases."""
