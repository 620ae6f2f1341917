"""
Settings: what the broker and topics have, how clients are shown them and change them.

`settings` is what the broker itself asks of its own, `dynamic` what is changed while it runs;
`entries` and `changes` are the two directions of the config APIs, `loggers` the levels that pass
for settings there.
"""
