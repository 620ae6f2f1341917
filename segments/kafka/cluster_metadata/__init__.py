"""KRaft's metadata log, ``__cluster_metadata-0``: topics, ids and configs of a data directory."""
