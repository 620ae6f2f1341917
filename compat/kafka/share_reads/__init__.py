"""
What share groups read of the partitions that this broker leads (KIP-932).

A share-partition is one partition as one share group reads it: records are acquired by members for
a time, and acknowledged one by one. What must survive goes to a
:class:`~logstore.compat.kafka.share_state.persister.Persister`.
"""
