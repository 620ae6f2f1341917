"""
The two SCRAM mechanisms: how they are numbered in metadata and on the wire, and what they compute.

Source: ``ScramMechanism``, ``ScramFormatter``; RFC 5802.
"""

from __future__ import annotations

import hashlib
import hmac
from enum import IntEnum
from random import Random

from logstore.segments.kafka.cluster_metadata.records import UserScramCredentialRecord

ITERATIONS_MIN = 4096
ITERATIONS_MAX = 16384
_SALT_BYTES = 16


class ScramMechanism(IntEnum):
    """A mechanism by its number; its name is Kafka's with underscores."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def text(self) -> str:
        """The mechanism's name, such as SCRAM-SHA-256."""
        return self.name.replace("_", "-")

    @property
    def hash_name(self) -> str:
        """The name of its hash function."""
        return self.name.removeprefix("SCRAM_").replace("_", "").lower()

    def hmac(self, key: bytes, text: bytes) -> bytes:
        """Return the code that says that whoever knows the key wrote the text."""
        return hmac.digest(key, text, self.hash_name)

    def hash(self, data: bytes) -> bytes:
        """Return the hash of some bytes."""
        return hashlib.new(self.hash_name, data).digest()

    def salted_password(self, password: str, salt: bytes, iterations: int) -> bytes:
        """Return what a client makes of its password, slowly on purpose."""
        return hashlib.pbkdf2_hmac(self.hash_name, password.encode(), salt, iterations)

    def stored_key(self, salted_password: bytes) -> bytes:
        """Return what a server keeps, to know who knows the password."""
        return self.hash(self.hmac(salted_password, b"Client Key"))

    def server_key(self, salted_password: bytes) -> bytes:
        """Return what a server keeps, to prove that it knows the user."""
        return self.hmac(salted_password, b"Server Key")

    def credential(self, name: str, salted: bytes, salt: bytes, count: int) -> (
        UserScramCredentialRecord
    ):  # fmt: skip
        """Return what is kept of a user; the salted password was made in `count` iterations."""
        return UserScramCredentialRecord(
            name, self.value, salt, self.stored_key(salted), self.server_key(salted), count
        )

    def credential_of(self, name: str, password: str, rng: Random) -> UserScramCredentialRecord:
        """Return what is kept of a user with that password."""
        salt = rng.randbytes(_SALT_BYTES)
        salted = self.salted_password(password, salt, ITERATIONS_MIN)
        return self.credential(name, salted, salt, ITERATIONS_MIN)

    def is_of(self, credential: UserScramCredentialRecord, password: str) -> bool:
        """Tell whether a credential was made of that password."""
        salted = self.salted_password(password, credential.salt, credential.iterations)
        return hmac.compare_digest(self.stored_key(salted), credential.stored_key)


SCRAM_MECHANISMS = {mechanism.text: mechanism for mechanism in ScramMechanism}
