"""
What a topology means with the topics that there are: partition counts, and what is missing.

Source: package ``streams.topics`` of Kafka's module ``group-coordinator``.
"""
