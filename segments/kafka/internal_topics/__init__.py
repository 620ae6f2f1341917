"""
The records of a broker's own topics, typed: what stands in their keys and values.

``__consumer_offsets`` (groups of all kinds), ``__transaction_state`` and ``__share_group_state``
hold messages in Kafka's message encoding behind their version. A message is an attrs class whose
annotations are its schema (:mod:`.schema`); one codec reads and writes them all (:mod:`.codec`).
"""
