"""
Tables of a RocketMQ broker are damaged; Java and ours load them, and are compared.

To run many: ``./dev run python -m tests.interop.damage.table_rounds --count 400``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from logstore.errors import CorruptFileError
from logstore.os_host import system_host
from logstore.segments.rocketmq.tables.consumer_offsets import ConsumerOffsetTable
from logstore.segments.rocketmq.tables.delay_offsets import DelayOffsetTable
from logstore.segments.rocketmq.tables.java_json import JsonError, parse_json
from logstore.segments.rocketmq.tables.json_table import JsonTable
from logstore.segments.rocketmq.tables.subscription_groups import SubscriptionGroupTable
from logstore.segments.rocketmq.tables.topics import TopicTable
from logstore.tools.dev import rocketmq_jars
from tests.interop.damage.text_kinds import DAMAGES
from tests.segments.rocketmq.golden_case import golden_cases

PROGRAM = Path(__file__).with_name("LoadTables.java")
SECONDS_MAX = 300
REFUSED = "!! refused"
TABLES: dict[str, type[JsonTable]] = {
    kind.file_name: kind
    for kind in (TopicTable, SubscriptionGroupTable, ConsumerOffsetTable, DelayOffsetTable)
}
#: the version of a table that was not there is the time at which it was made; offsets of pulling
#: consumers Java writes and does not read
LEFT_OUT = ("dataVersion", "pullOffsetTable")


class Damaged(NamedTuple):
    """A table in two copies, and what was done to it and to its backup."""

    name: str
    real: Path
    ours: Path
    done: str


def drawn(seed: int, directory: Path) -> Damaged:
    """Return a table with the damages of a seed."""
    chance = Random(f"tables {seed}")
    cases = [case for case in golden_cases() if case.version.startswith("5")]
    found = [
        path
        for name in [chance.choice(sorted(TABLES))]
        for case in cases
        for path in sorted(case.folder.rglob(f"config/{name}"))
        if path.stat().st_size
    ]
    source = chance.choice(found)
    done: list[str] = []
    for ending in ("", ".bak"):
        what = chance.choice(list(DAMAGES)[1:] if not ending else list(DAMAGES))
        data = DAMAGES[what](source.read_bytes(), chance)
        done.append(what)
        for side in ("real", "ours"):
            folder = directory / f"{seed}-{side}"
            folder.mkdir(parents=True, exist_ok=True)
            if data is not None:
                (folder / f"{source.name}{ending}").write_bytes(data)
    real, ours = (directory / f"{seed}-{side}" / source.name for side in ("real", "ours"))
    return Damaged(source.name, real, ours, f"{source.name} {done[0]}, backup {done[1]}")


def read_by_java(tables: Sequence[Damaged], home: Path) -> dict[str, str]:
    """Have Java load all; return what each holds, or that it was refused."""
    classes = rocketmq_jars.compiled("5", [PROGRAM])
    command = rocketmq_jars.java("5", PROGRAM.stem, behind=classes, home=home)
    text = "\n".join(str(one.real) for one in tables)
    done = subprocess.run(
        command, input=text, capture_output=True, encoding="utf-8", timeout=SECONDS_MAX, check=True
    )
    parts = done.stdout.split("== ")[1:]
    return {path: text for path, _, text in (part.partition("\n") for part in parts)}


def read_by_ours(damaged: Damaged) -> str:
    """Load it as a broker does; return what it holds, or why it was refused."""
    table = TABLES[damaged.name](system_host(), str(damaged.ours.parent))
    try:
        table.load()
    except CorruptFileError as error:
        return f"{REFUSED}: {error}"
    return table.encoded().decode()


def content(text: str) -> dict[Any, Any]:
    """Return what a table holds, without what is not compared."""
    try:
        found = parse_json(text.strip())
    except JsonError as error:
        return {"unreadable": str(error)}
    assert isinstance(found, dict)
    return {key: value for key, value in found.items() if value and key not in LEFT_OUT}


def difference(damaged: Damaged, real: str, ours: str) -> str | None:
    """
    Return what ours lacks, or has otherwise; None if nothing.

    It may have more: fields that Java does not know it keeps, as a wrong letter makes them.
    """
    if real.startswith(REFUSED):
        return None  # ours may find more, and loses nothing by it
    if ours.startswith(REFUSED):
        return None if not content(real) and "mend the file" in ours else ours
    lacking = only_in(content(real), content(ours))
    return f"lacks {lacking}" if lacking else None


def only_in(one: dict[Any, Any], other: dict[Any, Any]) -> dict[Any, Any]:
    """Return what the first has and the second has not so; Java finds constants in any case."""
    found: dict[Any, Any] = {}
    for key, value in one.items():
        beside = other.get(key)
        if isinstance(value, dict) and isinstance(beside, dict):
            if inner := only_in(value, beside):
                found[key] = inner
        elif str(value).lower() != str(beside).lower():
            found[key] = value
    return found


def run_rounds(seeds: Sequence[int], directory: Path) -> Iterator[str]:
    """Yield what is different."""
    tables = [drawn(seed, directory) for seed in seeds]
    real = read_by_java(tables, directory / "home")
    for seed, one in zip(seeds, tables, strict=True):
        found = difference(one, real[str(one.real)], read_by_ours(one))
        if found is not None:
            yield f"{seed}: {one.done}: {found}"


def main() -> int:
    """Run rounds and tell what is different."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=400)
    options = parser.parse_args()
    count = 0
    with tempfile.TemporaryDirectory() as scratch:
        seeds = range(options.first, options.first + options.count)
        for line in run_rounds(seeds, Path(scratch)):
            count += 1
            print(line)  # noqa: T201
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
