"""The share coordinator: what share groups have read, kept in ``__share_group_state``."""
