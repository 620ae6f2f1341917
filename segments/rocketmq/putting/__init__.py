"""How a message gets into the store, and what may keep it out."""
