"""The value of sasl.jaas.config."""

from __future__ import annotations

import pytest

from logstore.compat.kafka.security.jaas import JaasError, LoginModule, parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_a_login_module_with_options() -> None:
    """Values may be quoted, once or twice, or plain words; the flag's case does not matter."""
    text = f'{PLAIN} Required username=\'u\' password="p w;=" user_alice=secret-1 a$_.b="" ;'
    assert parse_jaas(text) == LoginModule(
        PLAIN,
        "required",
        {"username": "u", "password": "p w;=", "user_alice": "secret-1", "a$_.b": ""},
    )


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (r'"a\"b"', 'a"b'),
        (r'"a\\b"', "a\\b"),
        (r'"\t\n\r\a\b\f\v"', "\t\n\r\a\b\f\v"),
        (r'"\101\60\0\7x\18"', "A0\0\7x\x018"),
        (r"'it\'s'", "it's"),
        (r'"\q"', "q"),
        ("ümläut", "ümläut"),
    ],
)
def test_escapes_are_javas(written: str, value: str) -> None:
    """Also the octal ones."""
    assert parse_jaas(f"M required k={written};").options == {"k": value}


def test_comments_are_passed_over() -> None:
    """C's and Java's; within quotes they are text."""
    text = "/* one */ M // two\n required k=\"/* v */\" /* user_x='y' */ ; // the end"
    assert parse_jaas(text).options == {"k": "/* v */"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "0 login modules"),
        ("M required; N required;", "2 login modules"),
        ("M", "no control flag"),
        ("M maybe;", "one of required"),
        ("M required", "semicolon"),
        ('M required k="v"', "semicolon"),
        ("M required k;", "no value for the option k"),
        ("M required k=;", "no value for the option k"),
        ("M required k v;", "no value for the option k"),
        ("; M required;", "must begin"),
        ('M required k="v;', "no value for the option k"),
    ],
)
def test_what_is_none_is_refused(text: str, told: str) -> None:
    """The error says what is missing."""
    with pytest.raises(JaasError, match=told):
        parse_jaas(text)


def test_no_error_shows_a_value() -> None:
    """There may be passwords among them."""
    with pytest.raises(JaasError) as caught:
        parse_jaas('M required user_a="hush-hush" k="also-hush" "more-hush"')
    assert "hush" not in str(caught.value).replace("more-hush", "")
