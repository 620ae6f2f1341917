"""Patterns mean what they mean to RE2/J 1.8, and nothing that it refuses is one."""

from __future__ import annotations

import pytest

from logstore.compat.kafka.re2_pattern import PatternError, compiled


@pytest.mark.parametrize(
    ("pattern", "fits", "does_not"),
    [
        ("a.*", "a-b", "b"),
        ("", "", "a"),
        ("(?i)A-[a-c]", "a-B", "a-d"),
        ("(?i)[^a]", "b", "A"),
        ("(?i)[^k]", "\u017f", "\u212a"),
        ("(?i)[a-z]", "\u017f", "1"),
        (r"(?i)\W", "\u00df", "\u212a"),
        ("(?i)i", "I", "\u0131"),
        ("(?i)\u00df", "\u1e9e", "ss"),
        ("(?i)\u1fb3", "\u1fbc", "\u03b1"),
        (r"(?i)\p{Lu}", "a", "1"),
        (r"(?i)\p{Ll}", "K", "B"),
        (r"(?i)\pN", "1", "a"),
        (r"\B", "", "a"),
        ("a(?i)b|c", "C", "A"),
        ("((?i)a)b", "Ab", "AB"),
        (r"\Qa.b\E+", "a.bb", "axb"),
        ("[[:alpha:]]+", "aZ", "a1"),
        ("[[:^upper:]]", "a", "A"),
        ("(?i)[[:^upper:]]", "1", "a"),
        (r"\pL", "é", "1"),
        (r"\p{^L}", "1", "a"),
        (r"\P{Lu}", "a", "A"),
        (r"\d", "1", "\u0661"),
        (r"\s", " ", "\v"),
        (r"\w", "_", "é"),
        (r"[^\d]", "é", "1"),
        (r"\x61\x{62}\141", "aba", "ab"),
        ("(?P<n>a)(?<m>b)", "ab", "a"),
        ("a{,2}", "a{,2}", "a"),
        ("a{", "a{", "a"),
        ("a{01}", "a{01}", "a"),
        ("a{1,}", "aa", ""),
        ("[]a]", "]", "b"),
        ("[a-]", "-", "b"),
        (r"a\z", "a", "a\n"),
        ("a$", "a", "a\n"),
        (".", "a", "\n"),
        ("(?s).", "\n", ""),
        ("(?m)^a$\n^b$", "a\nb", "a"),
        (r"^*\b*a", "a", "b"),
        ("a(?i)*", "aa", "A"),
        (r"\_\-", "_-", "-"),
        ("]}", "]}", "]"),
    ],
)
def test_what_fits(pattern: str, fits: str, does_not: str) -> None:
    """As a whole."""
    assert compiled(pattern).fits(fits)
    assert not compiled(pattern).fits(does_not)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("(?>a)", "invalid or unsupported Perl syntax"),
        ("(?x)a", "invalid or unsupported Perl syntax"),
        ("(?i-)a", "invalid or unsupported Perl syntax"),
        ("(?P=n)", "invalid or unsupported Perl syntax"),
        ("(?P<a-b>x)", "invalid named capture"),
        ("(?P<n", "invalid named capture"),
        ("a++", "invalid nested repetition operator"),
        ("a{1}{2}", "invalid nested repetition operator"),
        ("a{*", "invalid nested repetition operator"),
        ("a{1001}", "invalid repeat count"),
        ("|*", "missing argument to repetition operator"),
        ("(*a)", "missing argument to repetition operator"),
        ("[[:foo:]]", "invalid character class range"),
        (r"\p", "invalid character class range"),
        (r"\p{L", "invalid character class range"),
        (r"\p{No such}", "invalid character class range"),
        (r"\Z", "invalid escape sequence"),
        (r"\C", "invalid escape sequence"),
        (r"\x{110000}", "invalid escape sequence"),
        (r"\8", "invalid escape sequence"),
        ("[^]", "missing closing ]"),
        ("[\\", "trailing backslash at end of expression"),
    ],
)
def test_what_is_no_pattern(pattern: str, reason: str) -> None:
    """Told in RE2's words, also what Python would read."""
    with pytest.raises(PatternError, match=f"^{reason}$".replace("]", "\\]")):
        compiled(pattern)
