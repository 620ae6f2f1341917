"""
What Produce requests bring, and the short ways that most of them take.

From the request inwards: the batches of a topic, the route that a client's requests take again and
again, those that come alone, the run of those that arrive together, the reply.
"""
