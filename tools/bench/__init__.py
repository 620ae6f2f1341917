"""
Benchmarks that drive any broker of a protocol from outside, and tell what was reached.

Nothing here knows the server's internals: a target is an address and, where it is known, a process
id. ``logstore bench kafka --help`` is the way in; :mod:`logstore.tools.bench.suite` lists what is
measured.
"""
