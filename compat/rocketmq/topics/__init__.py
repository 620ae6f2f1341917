"""Topics: their names, how they come, change and go."""
