"""``logstore fault``: make brokers fail that are served with a control port."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click

from logstore.tools.commands.fault_client import ControlClient
from logstore.tools.inspection.json_line import json_line

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
#: -2h is a DURATION, and no -h
_TAKES_MINUS = {"help_option_names": ["--help"], "ignore_unknown_options": True}
_STYLE = {"help_option_names": ["-h", "--help"]}
_OPTIONS = (
    click.option("--topic", metavar="PATTERN", help="Only requests that name such a topic."),
    click.option("--client", metavar="PATTERN",
                 help="Only those of such a client id, or RocketMQ group."),
    click.option("--after", type=click.IntRange(0), help="So many pass first."),
    click.option("--times", type=click.IntRange(0),
                 help="So many are struck, 0 for all from then on.  [default: 1]"),
    click.option("--chance", type=click.FloatRange(0, 1, min_open=True),
                 help="Each is struck with this probability.  [default: 1]"),
    click.option("--seed", type=int, help="Starts the dice of --chance.  [default: 0]"),
    click.option("--served", "is_served", is_flag=True,
                 help="Serve the request; only its answer is lost, late or a lie."),
)  # fmt: skip


@click.group(context_settings=_STYLE)
@click.option("--at", "address", metavar="[HOST:]PORT", envvar="LOGSTORE_CONTROL",
              help="Control port of `logstore serve`; without it $LOGSTORE_CONTROL.")  # fmt: skip
@click.option("--json", "is_json", is_flag=True, help="Print what the broker answers as JSON.")
@click.pass_context
def fault(context: click.Context, address: str | None, *, is_json: bool) -> None:
    """
    Make a broker fail that is served with --control-port: requests, files, time, leaders.

    Patterns are those of a shell. API is a name of Kafka's (Produce, Fetch, JoinGroup, ...) or of
    RocketMQ's requests (SEND_MESSAGE_V2, PULL_MESSAGE, ...), ERROR a name of their errors.

    \b
    Examples:
      export LOGSTORE_CONTROL=9099
      logstore fault fail Produce NOT_ENOUGH_REPLICAS --topic orders --times 3
      logstore fault delay 'Fetch' 2s --client 'app-*' --times 0
      logstore fault drop Produce --served
      logstore fault hold PULL_MESSAGE
      logstore fault release
      logstore fault disk write ENOSPC --path '*/orders-0/*.log'
      logstore fault disk-state --capacity-bytes 1000000
      logstore fault clock 1h
      logstore fault ls
    """
    context.obj = address, is_json


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options by which requests are chosen."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return click.pass_context(command)


def _client(context: click.Context) -> ControlClient:
    """Return who speaks to the control port; asked for late, so that --help needs none."""
    address, _ = context.obj
    if address is None:
        raise click.UsageError("say where it is: --at [HOST:]PORT, or $LOGSTORE_CONTROL")
    return ControlClient(address)


def _ask(context: click.Context, method: str, path: str, body: object = None) -> Any:
    """Ask the control port; with ``--json`` print what it says."""
    _, is_json = context.obj
    answer = _client(context).ask(method, path, body)
    if is_json:
        click.echo(json_line(answer))
    return None if is_json else answer


def _plan(
    context: click.Context, action: str, api: str, how: dict[str, Any], **more: object
) -> None:
    is_served, times = how.pop("is_served"), how.pop("times")
    fields = {name: value for name, value in how.items() if value is not None}
    if times is not None:
        fields["times"] = times or None
    when = "after" if is_served else "before"
    planned = _ask(
        context, "POST", "/faults", {"action": action, "api": api, "when": when, **fields, **more}
    )
    if planned is not None:
        click.echo(_sentence(planned))


@fault.command(context_settings=_STYLE)
@click.argument("api")
@click.argument("error")
@click.option("--message", help="What the answer says beside the error, where it can.")
@_options
def fail(context: click.Context, api: str, error: str, **how: Any) -> None:
    """Answer with ERROR instead of serving."""
    _plan(context, "fail", api, how, error=error)


@fault.command(context_settings=_STYLE)
@click.argument("api")
@click.argument("duration")
@_options
def delay(context: click.Context, api: str, duration: str, **how: Any) -> None:
    """Serve later by DURATION: 200ms, 2s, 1m."""
    _plan(context, "delay", api, how, delay_ms=_ms(duration))


@fault.command(context_settings=_STYLE)
@click.argument("api")
@_options
def drop(context: click.Context, api: str, **how: Any) -> None:
    """Hang up instead of serving."""
    _plan(context, "drop", api, how)


@fault.command(context_settings=_STYLE)
@click.argument("api")
@_options
def hold(context: click.Context, api: str, **how: Any) -> None:
    """Serve only once it is released; others go first."""
    _plan(context, "hold", api, how)


@fault.command("ls", context_settings=_STYLE)
@click.pass_context
def list_faults(context: click.Context) -> None:
    """Show what is planned, and what became of it."""
    state = _ask(context, "GET", "/")
    if state is None:
        return
    for planned in state["faults"]:
        click.echo(_sentence(planned))
    for planned in state["disk"]["planned"]:
        path, after, count = planned["path"], planned["after"], planned["count"]
        click.echo(f"disk: {planned['kind']} of {path} fails, {_how_often(after, count)}")
    for name in ("is_read_only", "sync_lies", "capacity_bytes"):
        value = state["disk"][name]
        if value not in (False, None):
            click.echo(f"disk: {name} {value}")


@fault.command(context_settings=_STYLE)
@click.argument("number", type=int, required=False)
@click.pass_context
def release(context: click.Context, number: int | None) -> None:
    """Let go on who is held: by fault NUMBER, or by any."""
    client = _client(context)
    held = [number] if number is not None else [
        one["number"] for one in client.ask("GET", "/faults") if one["action"] == "hold"
    ]  # fmt: skip
    for one in held:
        _ask(context, "POST", f"/faults/{one}/release")


@fault.command(context_settings=_STYLE)
@click.argument("number", type=int, required=False)
@click.pass_context
def clear(context: click.Context, number: int | None) -> None:
    """Let everything go well again, or only end fault NUMBER."""
    if number is not None:
        _ask(context, "DELETE", f"/faults/{number}")
        return
    _ask(context, "DELETE", "/faults")
    _ask(context, "DELETE", "/disk")


@fault.command(context_settings=_STYLE)
@click.argument("kind")
@click.argument("error", default="EIO")
@click.option("--path", default="*", metavar="PATTERN", help="Of files; * crosses slashes.")
@click.option("--after", default=0, type=click.IntRange(0), help="So many pass first.")
@click.option("--times", default=1, type=click.IntRange(0),
              help="So many fail, 0 for all from then on.  [default: 1]")  # fmt: skip
@click.option("--partial-bytes", default=0, type=click.IntRange(0),
              help="A failing write leaves so many bytes behind.")  # fmt: skip
@click.pass_context
def disk(context: click.Context, /, kind: str, error: str, times: int, **fields: object) -> None:
    """Let operations of a KIND fail: write, read, sync, open, rename, truncate, lock, ..."""
    _ask(context, "POST", "/disk", {"kind": kind, "error": error, "count": times or None, **fields})


@fault.command("disk-state", context_settings=_STYLE)
@click.option("--capacity-bytes", type=click.IntRange(0), help="So much files may still grow.")
@click.option("--read-only/--writable", "is_read_only", default=None, help="Refuse all changes.")
@click.option("--sync-lies/--sync-holds", default=None, help="Acknowledge syncs that were none.")
@click.pass_context
def disk_state(context: click.Context, /, **fields: object) -> None:
    """Fill the disk up, or make it read-only."""
    given = {name: value for name, value in fields.items() if value is not None}
    if not given:
        raise click.UsageError("say what is to become of the disk: see --help")
    _ask(context, "PUT", "/disk", given)


@fault.command(context_settings=_TAKES_MINUS)
@click.argument("duration")
@click.option("--wall-only", is_flag=True, help="Let only the wall clock jump; -5m sets it back.")
@click.pass_context
def clock(context: click.Context, duration: str, *, wall_only: bool) -> None:
    """Let DURATION pass at once: 90s, 10m, 7d. What is due by then is done."""
    name, milliseconds = "jump_wall_ms" if wall_only else "advance_ms", _ms(duration)
    if milliseconds < 0 and not wall_only:
        raise click.UsageError("time does not run backwards; --wall-only sets the wall clock back")
    _ask(context, "POST", "/clock", {name: milliseconds})


@fault.command(context_settings=_STYLE)
@click.argument("topic")
@click.argument("partition", type=int, required=False)
@click.option("--to", type=int, metavar="NODE", help="The node that is to lead; else the next one.")
@click.pass_context
def leaders(context: click.Context, topic: str, partition: int | None, to: int | None) -> None:
    """Begin the next leader epoch of TOPIC, or of one PARTITION of it."""
    asked = {"topic": topic, "partition": partition, "to": to}
    epochs: dict[str, int] = _ask(context, "POST", "/leaders", asked) or {}
    for index, epoch in epochs.items():
        click.echo(f"{topic}-{index}: leader epoch {epoch}")


@fault.command("stop-node", context_settings=_STYLE)
@click.argument("node", type=int)
@click.pass_context
def stop_node(context: click.Context, node: int) -> None:
    """Take a NODE of a cluster out: others lead what it led."""
    _tell_nodes(_ask(context, "POST", f"/nodes/{node}/stop"))


@fault.command("start-node", context_settings=_STYLE)
@click.argument("node", type=int)
@click.pass_context
def start_node(context: click.Context, node: int) -> None:
    """Let a NODE that was stopped in again."""
    _tell_nodes(_ask(context, "POST", f"/nodes/{node}/start"))


def _tell_nodes(states: dict[str, bool] | None) -> None:
    for node, is_up in (states or {}).items():
        click.echo(f"node {node}: {'up' if is_up else 'down'}")


def _ms(duration: str) -> float:
    found = re.fullmatch(r"(-?\d+(?:\.\d+)?)(ms|s|m|h|d)?", duration.strip())
    if found is None:
        raise click.BadParameter(f"{duration!r}: a number with ms, s, m, h or d")
    return float(found[1]) * _UNITS_MS[found[2] or "ms"]


def _sentence(planned: dict[str, Any]) -> str:
    """Return a line about a fault of requests."""
    what = {
        "fail": f"fail with {planned['error']}",
        "delay": f"delay by {planned['delay_ms']:g} ms",
    }.get(planned["action"], planned["action"])
    scope = "".join(
        f", {name} {planned[name]}" for name in ("topic", "client") if planned[name] != "*"
    )
    served = ", served all the same" if planned["when"] == "after" else ""
    how_often = _how_often(planned["after"], planned["times"])
    counts = f"{planned['struck_count']} of {planned['seen_count']} struck"
    held = f", {planned['held_count']} held" if planned["held_count"] else ""
    return (
        f"{planned['number']}: {what}: {planned['api']}{scope}{served}, {how_often}; {counts}{held}"
    )


def _how_often(after: int, times: int | None) -> str:
    count = "for ever" if times is None else "once" if times == 1 else f"{times} times"
    return f"{count} after {after}" if after else count
