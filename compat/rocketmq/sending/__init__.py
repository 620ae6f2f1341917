"""From a request to a message in the commit log, and the answer."""
