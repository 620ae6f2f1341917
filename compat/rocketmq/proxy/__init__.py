"""
RocketMQ 5's own protocol: what its gRPC clients ask, put to a broker in this process.

As Java's proxy in local mode, it speaks to the broker as any client does, and needs nothing of it.
"""
