"""Topics: which names they may have, and the rules of creating them."""
