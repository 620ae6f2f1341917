"""
Delegation tokens: what a client may hand to others, so that they come in as it does (KIP-48).

A token is an id and a secret; who has both logs in by SCRAM, with the id for a name, and is taken
for the token's owner. It ends by itself unless it is renewed, which only owner and renewers may.
"""
