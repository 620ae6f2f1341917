"""
Nodes: the brokers that clients see, of which one process and one directory may be several.

A client library must find the leader of every partition, follow it when it moves, and live with a
broker that goes away. To see that it does takes a cluster, but not three directories: here the
nodes of a cluster are addresses of one broker, each of which leads some partitions and coordinates
some groups, and refuses whoever comes to the wrong one. What the replicas of a partition would hold
is held once; the directory is that of a cluster of one, on which a real broker starts.
"""
