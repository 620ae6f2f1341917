"""
The settings of a broker: all that ``--set`` and a ``broker.conf`` take, in one name space.

Java spreads them over four classes and fills each with the names that it knows; those of the name
server, of authentication, of TLS and of the proxy are known too. A name that none of them has is
unknown: it is told, and has no effect.
"""

from __future__ import annotations

from collections.abc import Mapping

from logstore.segments.rocketmq.settings.broker_config_keys import BROKER_KEYS
from logstore.segments.rocketmq.settings.java_config import ConfigKey, JavaConfig, by_field_name
from logstore.segments.rocketmq.settings.network_config_keys import (
    AUTH_KEYS,
    CLIENT_KEYS,
    NAME_SERVER_KEYS,
    SERVER_KEYS,
    TLS_KEYS,
)
from logstore.segments.rocketmq.settings.proxy_config_keys import PROXY_KEYS
from logstore.segments.rocketmq.settings.store_config import STORE_CONFIG_KEYS, StoreConfig

#: What a broker prints of itself: BrokerConfig, both Netty classes and MessageStoreConfig.
PRINTED_KEYS: Mapping[str, ConfigKey] = {
    key.name: key
    for keys in (SERVER_KEYS, CLIENT_KEYS, BROKER_KEYS, STORE_CONFIG_KEYS.values())
    for key in keys
}
#: Every setting that Java knows with type and default, by name.
BROKER_CONFIG_KEYS: Mapping[str, ConfigKey] = {
    **{
        key.name: key
        for keys in (NAME_SERVER_KEYS, AUTH_KEYS, TLS_KEYS, PROXY_KEYS)
        for key in keys
    },
    **PRINTED_KEYS,
}
#: 4.x only: a broker of 5.x does not print them
_OLD_NAMES = frozenset(
    {
        "commercialBigCount",
        "commercialEnable",
        "commercialTimerCount",
        "commercialTransCount",
        "filterServerNums",
        "haSlaveFallbehindMax",
        "maxDelayTime",
    }
)


class BrokerSettings(JavaConfig):
    """
    All settings of a broker; `store` holds those of its store, with what follows from them.

    Raises, on construction and on update:
        ConfigError: a value is not what its setting takes; nothing is changed then.

    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self.store = StoreConfig()
        super().__init__(BROKER_CONFIG_KEYS, settings or {})

    def update(self, settings: Mapping[str, str]) -> list[str]:
        """Set values by name; return the names of keys whose value changed."""
        named = by_field_name(settings)
        for name, text in named.items():
            if name in self.keys:
                self.keys[name].parse(text)
        store = {name: text for name, text in named.items() if name in STORE_CONFIG_KEYS}
        self.store.update(store)
        return super().update(settings)

    @property
    def update_black_list(self) -> frozenset[str]:
        """Names that no client may change (``configBlackList``)."""
        names = self.text("configBlackList").split(";")
        return frozenset(name.strip() for name in names if name.strip())

    def properties_text(self, found: Mapping[str, str] | None = None) -> str:
        """
        Return all settings as lines ``name=value``, sorted, as a broker of 5.x prints them.

        `found` are values that hold whatever the settings say, as a port that was free.
        """
        printed = {
            name: text
            for name, text in {**self.texts(), **(found or {})}.items()
            if name in PRINTED_KEYS and name not in _OLD_NAMES
        }
        return "".join(f"{name}={text}\n" for name, text in sorted(printed.items()))
