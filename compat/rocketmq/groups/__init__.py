"""Consumer groups: what the broker keeps of them while nobody is there."""
