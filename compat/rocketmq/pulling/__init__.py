"""From a request to messages, or to a wait for them."""
