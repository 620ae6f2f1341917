"""Pop consumption: messages handed out for a time, and again unless they are acknowledged."""
