"""One file per API key; each registers its versions and its handler."""
