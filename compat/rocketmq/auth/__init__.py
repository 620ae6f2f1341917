"""Access control (ACL 2.0): who signs a request, and may he have it done."""
