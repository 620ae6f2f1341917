"""
A host and its port, as messages carry them: raw address, then the port in four bytes.

8 bytes for IPv4, 20 for IPv6. Source: ``org.apache.rocketmq.common.message.MessageExt``
(``socketAddress2ByteBuffer``).
"""

from __future__ import annotations

import ipaddress
import struct
from functools import lru_cache

import attrs

_PORT = struct.Struct(">i")
IPV4_BYTES = 8
IPV6_BYTES = 20


@attrs.frozen
class HostAddress:
    """An IPv4 or IPv6 address (4 or 16 raw bytes) and a port."""

    address: bytes
    port: int
    #: as it stands in a message: 8 or 20 bytes
    packed: bytes = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        """Pack once: the same address goes into every message of a connection."""
        if len(self.address) not in (4, 16):
            raise ValueError(f"{self.address.hex()} is no IPv4 or IPv6 address")
        object.__setattr__(self, "packed", self.address + _PORT.pack(self.port))

    @classmethod
    def of(cls, host: str, port: int) -> HostAddress:
        """
        Return the address that `host` spells (``10.0.0.1``, ``::1``, ``[::1]``, ``fe80::1%eth0``).

        Raises:
            ValueError: it is no address; names are not looked up.

        """
        text = host.strip("[]").partition("%")[0]
        return cls(ipaddress.ip_address(text).packed, port)

    @staticmethod
    @lru_cache(maxsize=4096)
    def from_packed(packed: bytes) -> HostAddress:
        """Return the address that stands in 8 or 20 bytes of a message."""
        return HostAddress(packed[:-4], _PORT.unpack(packed[-4:])[0])

    @property
    def is_ipv6(self) -> bool:
        """Tell whether the address has 16 bytes."""
        return len(self.address) == 16

    @property
    def host(self) -> str:
        """The address in digits, without the port."""
        return str(ipaddress.ip_address(self.address))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if self.is_ipv6 else f"{self.host}:{self.port}"
