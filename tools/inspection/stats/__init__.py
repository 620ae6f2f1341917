"""
What is in a store, in numbers: the measuring behind ``logstore stats``.

Every record is read once, in pieces that can be measured anywhere (:mod:`.kafka_measure`,
:mod:`.rocketmq_measure`); what each piece says is a small value (:mod:`.partition_stats`), and two
such values make one.
"""
