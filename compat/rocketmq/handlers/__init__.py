"""One module per request code; :mod:`logstore.compat.rocketmq.registry` says which is whose."""
