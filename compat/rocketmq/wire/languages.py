"""The languages that clients say they are written in: names in JSON headers, numbers in others."""

from __future__ import annotations

#: by number (``LanguageCode``)
LANGUAGES = (
    "JAVA",
    "CPP",
    "DOTNET",
    "PYTHON",
    "DELPHI",
    "ERLANG",
    "RUBY",
    "OTHER",
    "HTTP",
    "GO",
    "PHP",
    "OMS",
    "RUST",
    "NODE_JS",
)
_NUMBERS = {name: number for number, name in enumerate(LANGUAGES)}
_OTHER = "OTHER"


def language_of(value: object) -> str:
    """Return the name of a language by name or number; ``OTHER`` for all that is none."""
    if isinstance(value, str):
        return value if value in _NUMBERS else _OTHER
    if isinstance(value, int) and 0 <= value < len(LANGUAGES):
        return LANGUAGES[value]
    return _OTHER


def language_number(name: str) -> int:
    """Return the number of a language; that of ``OTHER`` for a name that is none."""
    return _NUMBERS.get(name, _NUMBERS[_OTHER])
