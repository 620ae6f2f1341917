"""
Settings of TLS and SASL that a listener here uses (Kafka 4.3). Each may be one listener's alone.

Source: ``BrokerSecurityConfigs``, ``SslConfigs``, ``SaslConfigs``.
"""

from __future__ import annotations

from collections.abc import Mapping

from logstore.segments.kafka.config_keys import ConfigKey, ConfigType, config_key

_STRING, _LIST, _PASSWORD = ConfigType.STRING, ConfigType.LIST, ConfigType.PASSWORD
_INT, _LONG, _CLASS = ConfigType.INT, ConfigType.LONG, ConfigType.CLASS

_KEYS = (
    config_key("ssl.keystore.type", _STRING, "JKS", "How the key store is written."),
    config_key("ssl.keystore.location", _STRING, None, "File of the key store."),
    config_key("ssl.keystore.password", _PASSWORD, None, "Password of the key store."),
    config_key("ssl.key.password", _PASSWORD, None, "Password of the key in it."),
    config_key("ssl.keystore.key", _PASSWORD, None, "The key itself, as PEM."),
    config_key("ssl.keystore.certificate.chain", _PASSWORD, None, "Its certificates, as PEM."),
    config_key("ssl.truststore.type", _STRING, "JKS", "How the trust store is written."),
    config_key("ssl.truststore.location", _STRING, None, "File of the trust store."),
    config_key("ssl.truststore.password", _PASSWORD, None, "Password of the trust store."),
    config_key("ssl.truststore.certificates", _PASSWORD, None, "Who is trusted, as PEM."),
    config_key("ssl.client.auth", _STRING, "none", "Whether clients must have a certificate.",
               choices=("required", "requested", "none")),
    config_key("ssl.enabled.protocols", _LIST, "TLSv1.2,TLSv1.3", "Versions of TLS."),
    config_key("ssl.cipher.suites", _LIST, "", "Cipher suites; all that are safe without it."),
    config_key("ssl.principal.mapping.rules", _STRING, "DEFAULT",
               "What of a certificate's name is the user."),
    config_key("sasl.enabled.mechanisms", _LIST, "GSSAPI", "How clients may say who they are."),
    config_key("sasl.jaas.config", _PASSWORD, None, "Users and options of a mechanism."),
    config_key("sasl.server.callback.handler.class", _CLASS, None, "Class that checks users."),
    config_key("sasl.server.max.receive.size", _INT, 524288,
               "Size of a request before authentication."),
    config_key("connections.max.reauth.ms", _LONG, 0,
               "How long an authentication holds; 0 is for as long as the connection."),
    config_key("sasl.oauthbearer.jwks.endpoint.url", _STRING, None,
               "Where the keys are by which signed tokens are checked."),
    config_key("sasl.oauthbearer.jwks.endpoint.refresh.ms", _LONG, 3600000,
               "How often these are fetched."),
    config_key("sasl.oauthbearer.clock.skew.seconds", _INT, 30, "How far clocks may differ."),
    config_key("sasl.oauthbearer.expected.audience", _LIST, "", "For whom tokens must be."),
    config_key("sasl.oauthbearer.expected.issuer", _STRING, None, "By whom they must be issued."),
    config_key("sasl.oauthbearer.scope.claim.name", _STRING, "scope", "The claim of scopes."),
    config_key("sasl.oauthbearer.sub.claim.name", _STRING, "sub", "The claim of who it is."),
)  # fmt: skip

#: Every setting of TLS and SASL that has an effect, by name.
SECURITY_CONFIG_KEYS: Mapping[str, ConfigKey] = {key.name: key for key in _KEYS}
