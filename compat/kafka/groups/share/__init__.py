"""
Share groups (KIP-932): members that read the same partitions and acknowledge record by record.

The coordinator knows the members and assigns partitions; what a group has read is kept by
:mod:`logstore.compat.kafka.share_state`.
"""
