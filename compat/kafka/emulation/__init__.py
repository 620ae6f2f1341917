"""
Older releases, for those who test clients against them.

A broker of 4.x has no requests of before 0.11 any more. One that emulates an older release answers
them as the last brokers did that could: what is produced becomes record batches, what is fetched
becomes messages of magic 1 or 0. The data directory stays that of a broker of today.
"""
