"""Who is connected, and what they say of themselves."""
