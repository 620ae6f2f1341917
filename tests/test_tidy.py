"""House rules that no linter knows: sizes, names, who may touch the world, docstrings."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CODE_FOLDERS = ("logstore", "segments", "compat", "tools")
FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 50
FORBIDDEN_NAMES = {"utils", "helpers", "common", "misc", "manager", "base", "types"}

WORLD_MODULES = {"os", "time", "socket"}
WORLD_KEEPERS = (
    "logstore/os_host.py",
    "logstore/deferred_sync.py",
    "logstore/passing_files.py",
    "logstore/streamed_files.py",
    "logstore/testing/",
)

SOCKET_MODULES = {"asyncio", "socket", "uvloop"}
SOCKET_KEEPERS = {
    "compat/server.py",
    "compat/listener.py",
    "compat/peer.py",
    "compat/running.py",
    # it serves nobody, and sets an option of the connection that Spark gave its process
    "compat/spark/worker_process.py",
    # it only looks whether a server of Spark listens, which is no peer of ours
    "compat/spark/session.py",
}

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def python_files(*folders: str) -> list[str]:
    """Return all modules below these folders of the root, each once (no link is followed)."""
    found: list[str] = []
    for folder in folders:
        for directory, _, names in os.walk(ROOT / folder):
            below = Path(directory).relative_to(ROOT)
            found += [str(below / name) for name in names if name.endswith(".py")]
    return sorted(found)


@cache
def text_of(path: str) -> str:
    """Return the source of a module."""
    return (ROOT / path).read_text(encoding="utf-8")


def tree_of(path: str) -> ast.Module:
    """Return the parsed source of a module."""
    return ast.parse(text_of(path), path)


class Function(NamedTuple):
    """What is asked about a function; the trees of all files at once would not fit anywhere."""

    name: str
    line: int
    line_count: int
    has_docstring: bool


@cache
def functions_in(path: str) -> list[Function]:
    """Return every function and method of a module."""
    return [
        Function(
            node.name,
            node.lineno,
            (node.end_lineno or 0) - node.lineno + 1,
            bool(ast.get_docstring(node, clean=False)),
        )
        for node in _function_nodes(path)
    ]


def _function_nodes(path: str) -> Iterator[FunctionNode]:
    pending: list[ast.stmt] = list(tree_of(path).body)
    while pending:
        node = pending.pop()
        if isinstance(node, FunctionNode):
            yield node
        pending.extend(statements_in(node))


def statements_in(node: ast.stmt) -> Iterator[ast.stmt]:
    """Yield those right below a statement: passing over all expressions takes a tenth of a walk."""
    for name in ("body", "orelse", "finalbody"):
        yield from getattr(node, name, ())
    for one in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield from one.body


def is_for_types_only(node: ast.AST) -> bool:
    """Tell whether this is an `if TYPE_CHECKING:` block, whose imports never happen."""
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    )


@cache
def imports_of(path: str) -> set[str]:
    """Return the top-level names of the modules that this one imports when it runs."""
    found: set[str] = set()
    pending: list[ast.stmt] = list(tree_of(path).body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
        elif not is_for_types_only(node):
            pending.extend(statements_in(node))
    return found


def test_the_walk_sees_the_code() -> None:
    """A rule over no files would always hold."""
    files = python_files(*CODE_FOLDERS, "tests")
    assert "logstore/os_host.py" in files
    assert "tests/test_tidy.py" in files
    assert imports_of("logstore/os_host.py") >= {"os", "time", "random"}


def test_files_are_short() -> None:
    """One noun fits one file."""
    files = python_files(*CODE_FOLDERS, "tests")
    lengths = {path: len(text_of(path).splitlines()) for path in files}
    assert {path: count for path, count in lengths.items() if count > FILE_LINES_MAX} == {}


def test_functions_are_short() -> None:
    """A function that does not fit a screen is two functions."""
    lengths = {
        f"{path}:{one.line} {one.name}": one.line_count
        for path in python_files(*CODE_FOLDERS, "tests")
        for one in functions_in(path)
    }
    assert {name: count for name, count in lengths.items() if count > FUNCTION_LINES_MAX} == {}


def test_modules_are_named_after_what_they_hold() -> None:
    """A module called utils or common is a drawer, and drawers fill up."""
    files = python_files(*CODE_FOLDERS, "tests")
    assert [path for path in files if FORBIDDEN_NAMES & set(Path(path).with_suffix("").parts)] == []


def test_only_the_host_touches_the_world() -> None:
    """Core and layouts get files and clock from `Host`; else no test could take them away."""
    found = [
        (path, name)
        for path in python_files("logstore", "segments")
        if not path.startswith(WORLD_KEEPERS)
        for name in sorted(imports_of(path) & WORLD_MODULES)
    ]
    assert found == []


def test_chance_comes_from_the_host() -> None:
    """Core and layouts may name the type `random.Random`, and draw from `Host.rng` alone."""
    found = [
        f"{path}:{node.lineno} random.{node.attr}"
        for path in python_files("logstore", "segments")
        if not path.startswith(WORLD_KEEPERS) and "random" in imports_of(path)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "random"
        and node.attr != "Random"
    ]
    assert found == []


def test_only_the_server_opens_sockets() -> None:
    """The protocols are sans-IO: bytes in, bytes out; server, listener and peer move the bytes."""
    found = [path for path in python_files("compat") if imports_of(path) & SOCKET_MODULES]
    assert [path for path in found if path not in SOCKET_KEEPERS] == []


def test_every_file_of_interop_is_marked_so() -> None:
    """The fast run passes over the whole folder: a test there without the mark would never run."""
    marks = {
        path: any(
            isinstance(node, ast.Assign) and "pytest.mark.interop" in ast.unparse(node)
            for node in tree_of(path).body
        )
        for path in python_files("tests/interop")
        if Path(path).name.startswith("test_")
    }
    assert len(marks) > 40
    assert [path for path, is_marked in marks.items() if not is_marked] == []


def test_every_module_says_what_it_is() -> None:
    """The first line of a module of the package is a sentence about it."""
    files = python_files(*CODE_FOLDERS)
    assert [path for path in files if not ast.get_docstring(tree_of(path))] == []


def test_every_test_is_a_sentence() -> None:
    """The docstring of a test is the specification that it checks."""
    missing = [
        f"{path}: {one.name}"
        for path in python_files("tests")
        for one in functions_in(path)
        if one.name.startswith("test_") and not one.has_docstring
    ]
    assert missing == []
