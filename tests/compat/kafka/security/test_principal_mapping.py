"""Names in certificates and what rules make of them; `interop` holds both against Java's."""

from __future__ import annotations

import ssl

import pytest

from logstore.compat.kafka.security.der import DerError
from logstore.compat.kafka.security.distinguished_name import subject_of
from logstore.compat.kafka.security.principal_mapping import MappingError, mapped, parse_rules
from tests.compat.tls_peers import authority

NAME = "CN=Alice,OU=ServiceUsers,O=Example"


@pytest.mark.parametrize(
    ("rules", "user"),
    [
        ("DEFAULT", NAME),
        ("", None),
        ("RULE:^CN=(.*?),.*$/$1/", "Alice"),
        ("RULE:^CN=(.*?),.*$/$1/L", "alice"),
        ("RULE:^CN=(.*?),.*$/$1@x/U", "ALICE@X"),
        ("RULE:^CN=(.*?),OU=Admins.*$/$1/, RULE:^CN=(.*?),OU=(.*?),.*$/$2-$1/ ,DEFAULT",
         "ServiceUsers-Alice"),
        ("RULE:^OU=.*$/x/,DEFAULT", NAME),
        ("RULE:^OU=.*$/x/", None),
        ("RULE:^CN=(.*?),.*$/$1$2$10/", "Alice$2Alice0"),
        ("RULE:^.*$/fixed/", "fixed"),
        ("RULE:.*/x/", "xx"),  # as Java: there is nothing behind the name, and it fits, too
    ],
)  # fmt: skip
def test_the_first_rule_that_fits_counts(rules: str, user: str | None) -> None:
    """With groups, and in another case if it says so; without one that fits nobody comes in."""
    parsed = parse_rules(rules)
    if user is None:
        with pytest.raises(MappingError, match="no rule"):
            mapped(parsed, NAME)
    else:
        assert mapped(parsed, NAME) == user


@pytest.mark.parametrize("rules", ["RULE:^CN=/x", "NONSENSE", "RULE:(/x/", "RULE:a/b/L,huh"])
def test_what_is_no_rule(rules: str) -> None:
    """It is refused when the broker starts."""
    with pytest.raises(MappingError):
        parse_rules(rules)


def test_the_name_in_a_certificate() -> None:
    """The most special part first, and with backslashes."""
    issued = authority().client('a,b+"c"')
    der = ssl.PEM_cert_to_DER_cert(issued.certificate)
    assert subject_of(der) == 'CN=a\\,b\\+\\"c\\",O=logstore'


@pytest.mark.parametrize("data", [b"", b"0", b"0\x80", b"0\x00", b"0\x020\x00", bytes(50)])
def test_what_is_no_certificate(data: bytes) -> None:
    """It is said so."""
    with pytest.raises(DerError):
        subject_of(data)
