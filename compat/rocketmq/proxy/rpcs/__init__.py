"""What clients ask of the proxy: a file for each, called like the request."""
