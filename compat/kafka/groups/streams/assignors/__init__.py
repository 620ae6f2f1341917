"""
Who runs which task: the one way that release 4.3 has, ``sticky``.

Source: package ``streams.assignor`` of Kafka's module ``group-coordinator``.
"""
