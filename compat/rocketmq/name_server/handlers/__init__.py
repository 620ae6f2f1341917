"""One module per request code of the name server."""
