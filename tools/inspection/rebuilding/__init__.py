"""
Derived files made anew: what ``logstore reindex`` and ``logstore salvage`` write.

Everything beside a ``.log`` follows from it: indexes, aborted transactions, producer snapshots and
leader epochs are folds over its batches (:mod:`.derived_files`).
"""
