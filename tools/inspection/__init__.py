"""What the looking tools (``ls``, ``dump``, ``query``) share: they read files and change none."""
