"""Regular expressions drawn piece by piece, right and wrong, and names that they are to fit."""

from __future__ import annotations

from typing import Any

from tests.interop.drawn.world import World

#: the rest of a transaction's name: letters of both cases, of several alphabets, and what is none
NAMES = (
    "",
    "ab",
    "aB1",
    "k\u212a",
    "s\u017f",
    "\u00fc",
    "\u0661_",
    " \n",
    "a\nb",
    "\u00df",
    "(",
    "xx",
)
ATOMS = (
    "a", "b", "B", "k", "s", "1", "_", "\u00fc", "\u212a", "\u017f", " ", "\n", ".", ".", ".", "x",
    "^", "$", "(a|b)", "(?:ab)", "(?P<n>a)", "(?<m>.)", "()", "(|a)", "(?i)", "(?s)", "(?m)",
    "(?U)", "(?i:K)", "(?s-i:.)", "(?-i)", "(?im)", "[ab]", "[^a]", "[a-z]", "[A-Z]", "[]a]",
    "[^]a]", "[a-]", "[-a]", "[a\\-z]", "[\\d-]", "[[:alpha:]]", "[[:^upper:]]", "[[:word:]]",
    "[\\pL]", "[^\\PL]", "[[a]", "[a&&b]", "[\\x61-\\x63]", "[^\\n]", "[\\]]", "[\u00e0-\u00ff]",
    "[^\\W\\d]", "\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "\\pL", "\\p{Lu}", "\\PN", "\\P{Ll}",
    "\\p{^L}", "\\pN", "\\p{L}", "\\p{Any}", "\\x61", "\\x{62}", "\\141", "\\012", "\\n", "\\t",
    "\\.", "\\_", "\\(", "\\Qa\\E", "\\Q(\\E", "\\b", "\\B", "\\A", "\\z", "|", "|", "(?i:\u017f)",
    "[k-s]",
)  # fmt: skip
REPEATS = ("*", "+", "?", "*?", "+?", "??", "{1}", "{0,2}", "{1,}", "{2}?", "{0}", "{,2}", "{ 1}")
WRONG = (
    "(", ")", "[", "]", "{", "}", "\\", "*", "+", "?", "**", "*+", "?+", "++", "{1}{2}", "{2,1}",
    "{1001}", "{3}{2}", "(?", "(?)", "(?i", "(?i-)", "(?--i)", "(?x)", "(?P<", "(?P<n",
    "(?P<>a)", "(?P<n->a)", "(?P<n>a)(?P<n>b)", "(?P=n)", "(?=a)", "(?!a)", "(?<=a)", "(?>a)",
    "(?#a)", "(?'n'a)", "[z-a]", "[a-\\d]", "[[:foo:]]", "[[:alpha:]", "[^]", "[]", "[\\", "[\\8]",
    "[\\Qa\\E]", "\\8", "\\1", "\\Z", "\\G", "\\C", "\\R", "\\X", "\\h", "\\K", "\\cA", "\\e",
    "\\E", "\\Q", "\\Qab", "\\x", "\\x{", "\\x{110000}", "\\x6", "\\p", "\\p{", "\\p{No}", "\\pX",
    "\\p{Lx}", "\\u0061", "\\0", "\\08", "\\<", "\\\u00fc", "\\ ", "\\\n", "(?i)(?", "(?:", "x{",
    "x{a}", "x{1", "x{1,", "x{01}", "x{-1}", "x{99999999999}", "(?i)[^k]", "(?i)[k]", "(?i)\u212a",
    "(?i)\u00df", "(?i)[[:lower:]]", "(?i)\\p{Lu}", "(?i)\\PL", "(?U)a+?", "^*", "$+", "\\b+",
    "(?i)*", "(?:)*", "()+", "|*", "(|*)", "(a|)+", "((((a))))", "(?i:a)b", "(?s).", "(?m)^b$",
)  # fmt: skip


def expression(world: World) -> str:
    """Draw an expression: of pieces that are right, now and then one that is not, or is odd."""
    pieces = []
    for _ in range(world.pick(1, 2, 3, 4, 5, 7)):
        piece = world.pick(*WRONG) if world.likely(0.12) else world.pick(*ATOMS)
        repeat = world.pick(*REPEATS) if world.likely(0.3) else ""
        pieces.append(piece + repeat)
    return "".join(pieces)


def name(world: World) -> None:
    """Let there be a transaction by an odd name, which all sessions share."""
    body: dict[str, Any] = {
        "TransactionalId": world.pick(*NAMES), "TransactionTimeoutMs": 60_000, "ProducerId": -1,
        "ProducerEpoch": -1,
    }  # fmt: skip
    world.twin.ask("InitProducerId", 5, body)


def transactions(world: World) -> None:
    """List the transactions whose names are of an expression."""
    text = expression(world)
    body = {"TransactionalIdPattern": world.pick(text, f"{text}.*", f".*{text}", f"(?s).?{text}.?")}
    world.twin.ask("ListTransactions", 2, body)
