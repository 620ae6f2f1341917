"""Names in certificates and what rules make of them: Java's and Kafka's classes, and ours."""

from __future__ import annotations

import datetime
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.name import _ASN1Type as Text  # pyright: ignore[reportPrivateUsage]
from cryptography.x509.oid import NameOID

from logstore.compat.kafka.security.distinguished_name import subject_of
from logstore.compat.kafka.security.principal_mapping import MappingError, mapped, parse_rules
from logstore.tools.dev.maven import PeerUnavailable
from tests.interop.conftest import VERSION, missing
from tests.interop.java_programs import kafka_program

pytestmark = pytest.mark.interop

_PROGRAM = Path(__file__).with_name("PrincipalNames.java")
_KEY = ec.generate_private_key(ec.SECP256R1())


def certificate(name: x509.Name) -> x509.Certificate:
    """Return a certificate of that name."""
    start = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(x509.Name([common("issuer")]))
        .public_key(_KEY.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=9))
        .sign(_KEY, SHA256())
    )


def common(text: str, kind: Text = Text.UTF8String) -> x509.NameAttribute[str]:
    """Return a common name."""
    return x509.NameAttribute(NameOID.COMMON_NAME, text, kind)


def names() -> list[x509.Name]:
    """Return names of all sorts."""
    every = [
        x509.NameAttribute(NameOID.COUNTRY_NAME, "DE"),
        x509.NameAttribute(NameOID.STATE_OR_PROVINCE_NAME, "Berlin"),
        x509.NameAttribute(NameOID.LOCALITY_NAME, "Mitte"),
        x509.NameAttribute(NameOID.STREET_ADDRESS, "Straße 1"),
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Example, Inc."),
        x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "ServiceUsers"),
        x509.NameAttribute(NameOID.DOMAIN_COMPONENT, "example", Text.IA5String),
        x509.NameAttribute(NameOID.USER_ID, "u-1"),
        common("Alice"),
        x509.NameAttribute(NameOID.EMAIL_ADDRESS, "a@example.com", Text.IA5String),
        x509.NameAttribute(NameOID.SERIAL_NUMBER, "17", Text.PrintableString),
        x509.NameAttribute(NameOID.TITLE, "Dr"),
    ]
    texts = (
        "plain", " a", "a ", "  a  b  ", "#a", "a#b", 'q"uote', "back\\slash", "a+b=c", "<a>;b,c",
        "ümläut €", "日本", "tab\tin", " ", "  ", "a/b$1",
    )  # fmt: skip
    found = [x509.Name(every), x509.Name(every[::-1])]
    found += [x509.Name([common(text)]) for text in texts]
    found += [x509.Name([common("x y", kind)]) for kind in (
        Text.PrintableString, Text.T61String, Text.BMPString,
        Text.IA5String, Text.UniversalString, Text.VisibleString,
    )]  # fmt: skip
    both = x509.RelativeDistinguishedName([common("b"), every[7], every[9]])
    return [*found, x509.Name([both, x509.RelativeDistinguishedName([every[4]])])]


RULES = (
    "DEFAULT",
    "RULE:^CN=([^,]*),.*$/$1/L,RULE:^(.*)$/<$1>/",
    "RULE:^.*?CN=(.*?),OU=ServiceUsers.*$/$1@x/U,DEFAULT",
    "RULE:^CN=(.*)$/$1-$2-$0-\\$1/ , RULE:nothing/x/",
    "RULE:CN=.*/fixed/,DEFAULT",
)


@pytest.mark.parametrize("rules", RULES)
def test_names_are_javas(rules: str, tmp_path: Path) -> None:
    """Every name is written as Java writes it, and mapped as Kafka maps it."""
    certificates = [certificate(name) for name in names()]
    files: list[str] = []
    for number, one in enumerate(certificates):
        files.append(str(tmp_path / f"{number}.pem"))
        Path(files[-1]).write_bytes(one.public_bytes(Encoding.PEM))
    try:
        command = kafka_program(_PROGRAM, rules, *files, version=VERSION)
    except PeerUnavailable as reason:
        missing(str(reason))
    command.insert(1, "-Dfile.encoding=UTF-8")
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    expected = done.stdout.removesuffix("\n").split("\n")
    found = [subject_of(one.public_bytes(Encoding.DER)) for one in certificates]
    assert [f"{name}\t{user_of(rules, name)}" for name in found] == expected


def user_of(rules: str, name: str) -> str:
    """Return what the rules make of a name."""
    try:
        return mapped(parse_rules(rules), name)
    except MappingError:
        return "!NoMatchingRule"
