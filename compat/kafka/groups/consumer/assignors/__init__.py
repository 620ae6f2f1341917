"""
Who shall have what: the assignors that a broker of 4.3 has, by name.

Each gives out the very partitions that Kafka's gives for the same members, topics and previous
assignment, down to the order in which a ``HashMap`` is walked.
"""
