"""
A life of a broker: clients, administrators, time, bad disks and crashes, as the dice fall.

The same seed is the same life. What clients were told is in the chronicle, and after every start of
the broker, and now and then in between, everything that can be read is held against it.
"""

from __future__ import annotations

import errno
import random
import re
from collections.abc import Callable

from logstore.compat.rocketmq.broker import Broker
from logstore.errors import LogStoreError
from logstore.host import read_file
from logstore.segments.rocketmq.files.mapped_file_directory import file_name
from logstore.segments.rocketmq.messages.message_layout import BLANK, BLANK_MAGIC
from logstore.testing.disk_faults import FaultKind
from logstore.testing.power_loss import KEEP_EVERYTHING, LOSE_UNSYNCED, PowerLoss, PowerLost
from logstore.testing.simulated_host import SimulatedHost
from logstore.tools.inspection.rocketmq.verification.store_check import StoreCheck
from logstore.tools.inspection.verification.finding import Finding
from tests.compat.rocketmq.broker_peer import DIRECTORY, a_broker
from tests.compat.rocketmq.lives.administrator import Administrator
from tests.compat.rocketmq.lives.audit import Audit
from tests.compat.rocketmq.lives.chronicle import Chronicle
from tests.compat.rocketmq.lives.consumers import CONSUMERS, Consumer
from tests.compat.rocketmq.lives.ordered_poppers import OrderedPopper
from tests.compat.rocketmq.lives.poppers import Popper
from tests.compat.rocketmq.lives.senders import BatchSender, DelayedSender, Sender
from tests.compat.rocketmq.lives.settings import drawn_settings
from tests.compat.rocketmq.lives.transactions import BEAT_INTERVAL_MS, TransactionalSender
from tests.compat.rocketmq.lives.world import Client, World

_OPERATIONS_MAX = 120
#: what `verify` says of a unit of which nothing is wrong but the tags code
_OTHER_TAGS = re.compile(
    r"physical offset (\d+), (\d+) bytes, tags code -?\d+; the message has \1, \2, "
)


class Life:
    """One life; :meth:`run` leads it to its end, or to the first thing that must not be."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.host = SimulatedHost(seed)
        self.settings = self._drawn_settings()
        self.events: list[str] = []
        self.is_sync = self.settings["flushDiskType"] == "SYNC_FLUSH"
        self.loses_power = self.is_sync or self.dice.random() < 0.3
        self.defers = self.dice.random() < 0.5
        self.jumps = self.dice.random() < 0.3
        broker, clock = self._opened(), self.host.clock
        self.world = World(self.dice, Chronicle(), broker, self.is_sync, clock)
        world, has_wheel = self.world, self.settings["timerWheelEnable"] == "true"
        self.transactional = TransactionalSender(world)
        self.popper = Popper(world, "pop")
        self.ordered = OrderedPopper(world, "ordered")
        poppers = {one.group: one for one in (self.popper, self.ordered)}
        self.administrator = Administrator(world, poppers)
        self.clients: list[Client] = [
            Sender(world), BatchSender(world), DelayedSender(world, has_wheel=has_wheel),
            self.transactional, self.transactional,
            *(Consumer(world, group) for group in CONSUMERS),
        ]  # fmt: skip
        if has_wheel:
            self.clients += [self.popper, self.popper, self.ordered]
        self._beat_ms = self._ticked_ms = self._healthy_since_ms = 0.0
        self._faulty_steps = 0

    def _drawn_settings(self) -> dict[str, str]:
        return drawn_settings(self.dice)

    @property
    def broker(self) -> Broker:
        """The broker of the day."""
        return self.world.broker

    @property
    def chronicle(self) -> Chronicle:
        """What clients were told."""
        return self.world.chronicle

    @property
    def told_count(self) -> int:
        """How many messages were acknowledged, or sent to topics that were deleted since."""
        told = sum(one.is_told for one in self.chronicle.sent.values())
        return told + len(self.chronicle.former)

    def run(self, step_count: int) -> None:
        """Lead the life, and look at its end; raises AssertionError that tells the way there."""
        try:
            for _ in range(step_count):
                self._step()
            self._come_back(KEEP_EVERYTHING, is_last=True)
            self._restart_cleanly()
            self._end()
        except Exception as error:
            error.add_note(f"{self.settings}; {self.loses_power=}, {self.defers=}, {self.jumps=}")
            error.add_note(", ".join(self.events[-40:]))
            raise

    def _rare_deeds(self) -> dict[Callable[[], None], float]:
        """Return what is done instead of a client's next thing, and how often."""
        return {
            self.administrator.create_topic: 0.03 if self.chronicle.places else 1,
            self.administrator.delete_topic: 0.01,
            self.administrator.delete_group: 0.01,
            self.administrator.clean_log: 0.01,
            self.administrator.clean_queues: 0.01,
            self._pass_time: 0.15,
            self._jump_clock: 0.02 if self.jumps else 0,
            self._break_disk: 0.015,
            self._plan_crash: 0.03,
            self._restart_cleanly: 0.01,
            self._audit: 0.02,
        }

    def _step(self) -> None:
        deed: Callable[[], None] = self.dice.choice(self.clients).act
        for candidate, chance in self._rare_deeds().items():
            if self.dice.random() < chance:
                deed = candidate
                break
        owner = getattr(deed, "__self__", self)
        self.events.append(getattr(deed, "__name__", "") + (
            "" if owner is self else f" of {type(owner).__name__}"))  # fmt: skip
        try:
            deed()
            self.world.listen()
            self._ticked_ms = self.host.clock.monotonic_ms()
        except PowerLost:
            self._come_back()
        if self._faulty_steps:
            self._faulty_steps -= 1
            if not self._faulty_steps:
                self._mend()

    # time, disks and crashes

    def _pass_time(self) -> None:
        delay_ms = self.dice.choice((1, 100, 700, 3000, 5_000, 20_000, 70_000, 400_000))
        if self.settings["fileReservedTime"] == "1" and self.dice.random() < 0.15:
            delay_ms = 4_000_000  # files are past their time
        self._let_pass(delay_ms)
        self.events[-1] += f" {delay_ms}"

    def _let_pass(self, delay_ms: float) -> None:
        """Let time pass, timer by timer in short times, in leaps otherwise."""
        clock, timers = self.host.clock, self.broker.timers
        end_ms = clock.monotonic_ms() + delay_ms
        leap_ms = max(100.0, delay_ms / 100)
        while clock.monotonic_ms() < end_ms:
            clock.advance(min(leap_ms, end_ms - clock.monotonic_ms()))
            timers.run()
            self.world.carry()
            if clock.monotonic_ms() > self._beat_ms + BEAT_INTERVAL_MS:
                self._beat_ms = clock.monotonic_ms()
                self.transactional.beat()

    def _jump_clock(self) -> None:
        """Set the wall clock forth or back: somebody does, or NTP."""
        jump_ms = self.dice.choice((10, 3000, 60_000, 3_600_000, 86_400_000))
        jump_ms *= self.dice.choice((-1, 1))
        self.world.jump_clock(jump_ms)
        self.events[-1] += f" {jump_ms}"

    def _break_disk(self) -> None:
        kinds: list[FaultKind] = ["write", "write", "write", "sync", "open", "rename"]
        kind = self.dice.choice(kinds)
        code = self.dice.choice((errno.ENOSPC, errno.EIO))
        faults, after = self.host.fs.faults, self.dice.randrange(6)
        if kind == "sync":
            faults.fail_next_sync(
                code, after=after, drops_unsynced=self.loses_power and self.dice.random() < 0.5
            )
        else:
            faults.fail_next(
                kind, code, after=after, count=self.dice.choice((1, 1, 3)),
                partial_bytes=self.dice.choice((0, 10, 70)) if kind == "write" else 0,
            )  # fmt: skip
        self.events[-1] += f" {kind} {errno.errorcode[code]} after {after}"
        self.chronicle.troubles += 1
        self.world.is_healthy = False
        self._faulty_steps = self.dice.randrange(1, 8)

    def _mend(self) -> None:
        """Get a good disk, and often a new broker on it."""
        if not (self._faulty_steps or self.host.fs.faults.planned):
            return
        self._faulty_steps = 0
        self.host.fs.faults.clear()
        self.events.append("mended")
        if self.dice.random() < 0.5:
            self._come_back(KEEP_EVERYTHING)

    def _plan_crash(self) -> None:
        self.host.fs.cut_power_after(self.dice.randrange(_OPERATIONS_MAX))

    def _come_back(self, loss: PowerLoss | None = None, *, is_last: bool = False) -> None:
        """Start again after a crash, which may come again at once."""
        self.host.fs.faults.clear()
        self._faulty_steps = 0
        durable = self._durable_end()
        self._settle_offsets()
        for _ in range(4):
            if loss is None:
                random_loss = PowerLoss.random(self.dice.getrandbits(30))
                loss = self.dice.choice((LOSE_UNSYNCED, random_loss, KEEP_EVERYTHING))
                loss = loss if self.loses_power else KEEP_EVERYTHING
            self.events.append(f"crash {loss}")
            self.chronicle.troubles += 1
            self.host.power_loss(loss)
            if not is_last and self.dice.random() < 0.2:
                self._plan_crash()
            try:
                self._start()
                self._recovered(durable)
                self._audit(is_after_crash=True)
            except PowerLost:
                loss, is_last = None, True
                continue
            return

    def _settle_offsets(self) -> None:
        """What groups committed is written after five seconds, ten after a start the first time."""
        now_ms = self._ticked_ms
        if self.world.is_healthy and now_ms > self._healthy_since_ms + 20_000:
            for truth in self.chronicle.offsets.values():
                truth.settle(now_ms - 10_000)

    def _durable_end(self) -> int:
        """Return how long the log must be after the next start."""
        log = self.broker.store.commit_log
        return (
            log.flushed_where if self.loses_power else max(log.flushed_where, log.committed_where)
        )

    def _recovered(self, durable: int) -> None:
        end = self.world.log_end
        text = f"the log ends at {end}, and was safe up to {durable}"
        assert end >= durable or self._is_padding(end, durable), text
        self.chronicle.lose(end)
        self.popper.lose(end)
        self.ordered.lose(end)
        if self.settings["enabledAppendPropCRC"] == "false" and end > durable:
            self.chronicle.torn.append((durable, end))

    def _is_padding(self, start: int, end: int) -> bool:
        """Tell whether nothing but the rest of a file stands there: without a next one it goes."""
        size_bytes = int(self.settings["mappedFileSizeCommitLog"])
        path = f"{DIRECTORY}/commitlog/{file_name(start - start % size_bytes)}"
        position = start % size_bytes
        found = read_file(self.host.fs, path)[position : position + 8]
        return found == BLANK.pack(end - start, BLANK_MAGIC)

    def _restart_cleanly(self) -> None:
        if self.host.fs.faults.planned:
            return
        try:
            self.broker.close()
        except (LogStoreError, OSError):  # a failed sync is final
            self._come_back(KEEP_EVERYTHING)
            return
        self.host.fs.process_death()
        if not self.world.is_healthy:
            self.chronicle.troubles += 1  # what was not synced for good has the start recover
        for truth in self.chronicle.offsets.values():
            truth.settle(self.host.clock.monotonic_ms() + 1)
        self._start()
        self._audit()

    def _opened(self) -> Broker:
        broker = a_broker(self.host, self.settings)
        broker.defers_work = broker.lingers = self.defers
        broker.start_housekeeping()
        return broker

    def _start(self) -> None:
        self.world.waiting.clear()
        self.world.broker = self._opened()
        self.world.is_healthy = True
        self._healthy_since_ms = self._ticked_ms = self.host.clock.monotonic_ms()
        for client in {id(one): one for one in self.clients}.values():  # nobody comes twice
            client.reconnect()

    # the truth

    def _audit(self, *, is_after_crash: bool = False) -> None:
        """Read everything, and hold it against the chronicle."""
        store = self.broker.store
        is_behind = store.dispatching.reput_from < store.commit_log.wrote_where
        is_ill = not store.running_flags.is_writeable or (is_behind and not self.world.is_healthy)
        if self.host.fs.faults.planned or is_ill:
            return  # what the log took before a sync failed comes into its queue at the next start
        if self.settings["transientStorePoolEnable"] == "true":
            self._let_pass(300)  # nobody sees what the pool has not written
        self.world.listen()
        Audit(self.broker, self.chronicle, self.dice).run(is_after_crash=is_after_crash)

    def _end(self) -> None:
        """Let everything come that is to come."""
        self.world.jump_clock(self.world.latest_ms - self.world.now_ms())
        for _ in range(4):
            self._let_pass(30_000)
            self.transactional.answer_questions(is_last=True)
        self._let_pass(1_000_000)
        self.world.listen()
        if self.popper in self.clients:
            self._pop_all()
            self._pop_all_in_order()
        audit = Audit(self.broker, self.chronicle, self.dice)
        audit.run()
        self.chronicle.check_settled(
            (body for bodies in audit.seen.values() for body in bodies),
            audit.log_start,
            self.world.latest_ms - int(self.settings["fileReservedTime"]) * 3_600_000,
        )
        self.popper.check_settled(audit.seen)
        self.ordered.check_settled(audit.seen)
        audit.check_given_back(is_settled=True)
        self._close()
        self._verify()

    def _close(self) -> None:
        self.broker.close()
        self.host.fs.process_death()

    def _verify(self) -> None:
        """No file lies."""
        try:
            found = list(StoreCheck(self.host.fs, DIRECTORY, self.settings).findings())
        except LogStoreError as error:
            raise AssertionError(f"verify: {error}") from error
        is_index_kept = self.settings["messageIndexSafe"] == "true"
        damage = [
            one for one in found
            if one.is_damage and not _is_excused(one, is_index_kept=is_index_kept)
            and not self._is_torn(one) and not self._is_former(one)
        ]  # fmt: skip
        assert not damage, f"verify: {damage}"

    def _is_torn(self, finding: Finding) -> bool:
        """Tell whether a unit outlived the tags of its message, for which nobody waited."""
        match = _OTHER_TAGS.search(finding.text) if finding.kind == "unit" else None
        return match is not None and self.chronicle.may_be_torn(int(match[1]))

    def _is_former(self, finding: Finding) -> bool:
        """Tell whether it may be of a topic that was made anew: the log has messages of both."""
        if finding.kind not in ("unit", "unit-missing", "queue-missing"):
            return False
        topic = finding.file.split("/")[1].removeprefix(f"%RETRY%{self.popper.group}_")
        return topic in self.chronicle.dropped

    def _pop_all(self) -> None:
        """Have the group that pops acknowledge everything."""
        popper, idle_rounds = self.popper, 0
        popper.held.clear()
        while idle_rounds < 3:
            for topic in sorted(popper.topics & set(self.chronicle.topics())):
                popper.pop(topic, 32, 60_000)
            idle_rounds = 0 if popper.held else idle_rounds + 1
            while popper.held:
                popper.ack(*popper.held.pop())
            self._let_pass(35_000)

    def _pop_all_in_order(self) -> None:
        """Have the group that pops in order acknowledge everything."""
        popper, idle_rounds = self.ordered, 0
        popper.held.clear()
        while idle_rounds < 3:
            for place in sorted(self.chronicle.places):
                if place[0] in popper.topics:
                    popper.pop(place, 32, 60_000)
            idle_rounds = 0 if popper.held else idle_rounds + 1
            while popper.held:
                popper.ack(*popper.held.pop())
            self._let_pass(35_000)


def _is_excused(finding: Finding, *, is_index_kept: bool) -> bool:
    """
    Tell whether a finding may be true.

    Units that were not flushed may outlive a power loss that their extension did not. Java leaves
    them as well, and goes by the message then. And a crash costs entries of the last index file,
    unless it is told not to: all of them, where it ends in the millisecond of the one before.
    """
    if finding.kind.startswith("index-") and not is_index_kept:
        return True
    return finding.kind == "unit" and "tags code -9223372036854" in finding.text
