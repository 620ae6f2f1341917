"""Our brokers on their own layout and on the other one: each protocol is held against itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from logstore.tools.bench import rocketmq_targets, targets
from logstore.tools.bench.frames import BenchError
from logstore.tools.bench.rocketmq_targets import RocketMQInstance, RocketMQTarget
from logstore.tools.bench.targets import Instance, Target

#: a protocol on the other's layout; on its own, with the other one served beside it; and alone
FOREIGN, SHARED, OWN = "foreign", "shared", "own"
KINDS = (FOREIGN, SHARED, OWN)
KAFKA, ROCKETMQ = "kafka", "rocketmq"


class KafkaOver(targets.OursInstance):
    """``logstore serve`` of Kafka's protocol, and perhaps the other one, on this layout."""

    def __init__(self, directory: Path, options: Sequence[str]) -> None:
        super().__init__(directory)
        self._options = options

    def options(self) -> list[str]:
        """Return what `serve` is told, but for settings."""
        return [*super().options(), *self._options]


class RocketMQOver(rocketmq_targets.OursInstance):
    """``logstore serve`` of RocketMQ's protocol, and perhaps the other one, on this layout."""

    def __init__(self, directory: Path, options: Sequence[str]) -> None:
        super().__init__(directory)
        self._options = options

    def options(self) -> list[str]:
        """Return what `serve` is told; the last one of an option that comes twice counts."""
        return [*super().options(), *self._options]


def options_of(kind: str, protocol: str) -> list[str]:
    """Return what `serve` is told so that a protocol is on the layout that a kind means."""
    other = ROCKETMQ if protocol == KAFKA else KAFKA
    if kind == OWN:
        return []
    if kind == SHARED:
        return ["--layout", protocol, "--protocol", f"{KAFKA},{ROCKETMQ}"]
    return ["--layout", other, "--protocol", protocol]


class KafkaTarget(Target):
    """Kafka's protocol, as a kind means it."""

    kinds = KINDS

    def made(self, directory: Path) -> Instance:
        """Return an instance of this kind on an empty directory, not started yet."""
        options = options_of(self.name, KAFKA)
        if self.name == SHARED:
            options += ["--namesrv-port", "0", "--broker-port", "0"]
        return KafkaOver(directory, options)


class RocketMQTargetOver(RocketMQTarget):
    """RocketMQ's protocol, as a kind means it."""

    kinds = KINDS

    def made(self, directory: Path) -> RocketMQInstance:
        """Return an instance of this kind on an empty directory, not started yet."""
        options = options_of(self.name, ROCKETMQ)
        instance = RocketMQOver(directory, options)
        if self.name == SHARED:
            options += ["--port", "0", "--namesrv-port", str(instance.address[1])]
        return instance


class BridgeTarget(Target):
    """Both protocols under the name of a kind: a cell asks for the broker of its own."""

    kinds = KINDS

    def __init__(self, name: str, directory: str | None = None) -> None:
        if name not in KINDS:
            raise BenchError(f"no target {name!r}; there are {', '.join(KINDS)}")
        super().__init__(name, directory)
        self._of: dict[str, Target] = {
            KAFKA: KafkaTarget(name, directory),
            ROCKETMQ: RocketMQTargetOver(name, directory),
        }

    def of(self, protocol: str) -> Target:
        """Return the broker of a protocol; it is started when it is first asked for."""
        return self._of[protocol]

    @property
    def is_running(self) -> bool:
        """Whether any of the brokers was asked for and started."""
        return any(target.is_running for target in self._of.values())

    def cpu_seconds(self) -> float | None:
        """Return what those that run have used so far."""
        running = [target for target in self._of.values() if target.is_running]
        return sum(target.cpu_seconds() or 0.0 for target in running)

    def forget_if_dead(self) -> None:
        """Let the next use start a new one where an old one has ended."""
        for target in self._of.values():
            if target.is_running:
                target.forget_if_dead()

    def last_words(self) -> str:
        """Return the last line that a broker has written, "" if there is none."""
        return next(filter(None, (target.last_words() for target in self._of.values())), "")

    def close(self) -> None:
        """Kill every broker that was started here and remove all data."""
        for target in self._of.values():
            target.close()
        super().close()
