"""
Whether a directory's files tell one story: the checks behind ``logstore verify``.

Each segment is scanned once (:mod:`.segment_scan`, many at a time); what the scans found is folded
in the order of the log and held against everything that was derived from it: indexes, transaction
indexes, producer snapshots, leader epochs, checkpoints.
"""
