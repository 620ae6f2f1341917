"""One file per API key, with its handler; the table of them is the registry."""
