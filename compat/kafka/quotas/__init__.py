"""
Client quotas: how much a user, a client id or both may send, fetch and change in a time.

Limits are kept in the metadata log. Nothing of this is imported while there are none.
"""
