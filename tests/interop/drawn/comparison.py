"""Two answers are the same if they differ by nothing but what each broker makes up for itself."""

from __future__ import annotations

import base64
import re
import time
from typing import Any

from tests.interop.drawn.batches import plain_batches
from tests.interop.drawn.orders import ORDERED_UP_TO
from tests.interop.drawn.schemas import ZERO_UUID, Field, Schema

#: Of the machine and of the moment: where a broker is, and when something was.
IGNORED = frozenset(
    ("Host", "Port", "BrokerEpoch", "TotalBytes", "UsableBytes", "LogDir", "PartitionSize",
     "FinalizedFeaturesEpoch")
)  # fmt: skip
#: Of the metadata's log, in which each counts records of its own, and of its listener.
OF_QUORUM = frozenset(
    ("HighWatermark", "LogEndOffset", "Listeners", "LeaderEpoch", "ReplicaDirectoryId")
)
TIMES = frozenset(
    ("LogAppendTimeMs", "TransactionStartTimeMs", "LastTimestamp", "LastFetchTimestamp",
     "LastCaughtUpTimestamp")
)  # fmt: skip
#: Settings are documented in words of our own: whether they are must be the same.
SENTENCES = frozenset(("Documentation",))
#: Why something was refused is told in Kafka's words, but for the times in them.
REASONS = frozenset(("ErrorMessage", "BatchIndexErrorMessage"))
_TIME = re.compile(r"\b1\d{12}\b|-922337\d{13}\b")  # or as far below it as times can be told
#: Records that cannot be read are refused as that, where Kafka stumbles over some of them.
INVALID_RECORD, STUMBLED = 87, -1
#: A share group's partitions are shared out by and by, after their state has begun, as SKIPPED.md
#: says; who has which of them depends on that.
COMING_LATE = "Assignment"
#: Numbers and names that each broker makes up; which stands for which is learnt as they come.
MADE = frozenset(("ProducerId", "MemberId", "SessionId", "Leader", "ClusterId", "TokenId", "Hmac"))
#: What begins or ends so long from now: each broker is asked at another moment.
FROM_NOW = frozenset(
    ("SessionLifetimeMs", "IssueTimestampMs", "ExpiryTimestampMs", "MaxTimestampMs",
     "IssueTimestamp", "ExpiryTimestamp", "MaxTimestamp")
)  # fmt: skip
#: What SCRAM draws by lot: the server's half of the nonce, the salt, and what is proved with them.
_CHALLENGE, _PROOF = re.compile(rb"r=[^,]*,s=[^,]*,i="), re.compile(rb"v=[A-Za-z0-9+/]+=*")
#: Records of topics that keep their own time have that of each broker.
APART_MS, NOW_MS = 2_000, 60_000
#: What tells items of a list apart, so that another order is told as that and no more.
KEYS = frozenset(("Name", "TopicName", "TopicId", "Topic", "GroupId", "PartitionIndex"))


class Comparison:
    """Knows which made-up names stand for each other, and compares answers by that."""

    def __init__(self, shuffled: dict[tuple[str, str], tuple[str, ...]]) -> None:
        self._theirs: dict[Any, Any] = {}
        self._ours: dict[Any, Any] = {}
        self._shuffled = shuffled

    def differences(self, schema: Schema, ours: Any, real: Any) -> list[str]:
        """Return what is different, a line each."""
        if isinstance(ours, str) or isinstance(real, str):
            return [] if ours == real else [f"{_short(ours)} instead of {_short(real)}"]
        return self._structs(schema.fields, ours, real, schema.name)

    def _structs(self, fields: tuple[Field, ...], ours: Any, real: Any, path: str) -> list[str]:
        if ours is None or real is None:
            return [] if ours == real else [f"{path}: {ours!r} instead of {real!r}"]
        found = []
        for field in fields:
            if field.name in ours or field.name in real:
                mine, other = ours.get(field.name), real.get(field.name)
                found += self._field(field, mine, other, f"{path}.{field.name}")
        return found

    def _field(self, field: Field, ours: Any, real: Any, path: str) -> list[str]:
        found: list[str] = []
        if path.startswith("DescribeQuorumResponse") and field.name in OF_QUORUM:
            return found
        if not field.is_array or ours is None or real is None:
            return self._one(field, ours, real, path)
        if len(ours) != len(real):
            return [f"{path}: {len(ours)} instead of {len(real)}: {ours!r} instead of {real!r}"]
        name = (path.partition(".")[0], field.name)
        key = self._shuffled.get(name)
        if key is not None and len(real) > ORDERED_UP_TO.get(name, 0):
            ours, real = self._sorted(ours, key, 0), self._sorted(real, key, 1)
        elif field.is_struct and (names := [one.name for one in field.fields if one.name in KEYS]):
            mine = [[self.translated(str(one.get(name))) for name in names] for one in ours]
            others = [[str(one.get(name)) for name in names] for one in real]
            if mine != others and sorted(mine) == sorted(others):
                by_key = tuple(names)
                found = [f"{path}: in another order"]
                ours, real = self._sorted(ours, by_key, 0), self._sorted(real, by_key, 1)
        for number, (mine, other) in enumerate(zip(ours, real, strict=True)):
            found += self._one(field, mine, other, f"{path}[{number}]")
        return found

    def _sorted(self, items: list[Any], key: tuple[str, ...], side: int) -> list[Any]:
        """Return items by what they are called; what is made up counts as the real one calls it."""
        known = self._theirs if side == 0 else {}

        def order(item: Any) -> str:
            parts = [(name, item.get(name)) for name in key] if key else [("", item)]
            return repr(
                [known.get(one, one) if _is_name(name, one) else one for name, one in parts]
            )

        return sorted(items, key=order)

    def _one(self, field: Field, ours: Any, real: Any, path: str) -> list[str]:
        if field.name == COMING_LATE and path.startswith("ShareGroup"):
            return []
        if field.is_struct:
            return self._structs(field.fields, ours, real, path)
        if field.name in IGNORED:
            return []
        if path.startswith("CreateTopicsResponse") and field.name == "TopicId":
            return []  # one that is only validated has none of ours; Metadata tells of the others
        ours, real = _without_the_moment(field.name, ours, real)
        if field.type == "records":
            return self._records(ours, real, path)
        if ours == real or (ours != ours and real != real):  # or both are no number
            return []
        if _is_of_now(field.name, path, ours, real):
            return []
        if path.startswith("ProduceResponse") and (ours, real) == (INVALID_RECORD, STUMBLED):
            return []
        if field.type == "uuid" or field.name in MADE:
            return self._made(ours, real, path)
        if isinstance(ours, str) and isinstance(real, str):
            ours = self.translated(ours)
            if ours == real:
                return []
        return [f"{path}: {ours!r} instead of {real!r}"]

    def _made(self, ours: Any, real: Any, path: str) -> list[str]:
        known = self._theirs.get(ours), self._ours.get(real)
        if known == (real, ours):
            return []
        if known != (None, None) or not (_is_made(ours) and _is_made(real)):
            return [f"{path}: {ours!r} (known as {known[0]!r}) instead of {real!r} ({known[1]!r})"]
        self.learn(ours, real)
        return []

    def learn(self, ours: Any, real: Any) -> None:
        """Know that ours and the real one call the same thing so."""
        self._theirs[ours], self._ours[real] = real, ours

    def translated(self, text: str) -> str:
        """Return a text of ours with the real broker's names in it."""
        for mine, other in self._theirs.items():
            if isinstance(mine, str) and mine in text:
                text = text.replace(mine, other)
            elif isinstance(mine, bytes):
                text = text.replace(uuid_text(mine), uuid_text(other))
        return text

    def _records(self, ours: bytes | None, real: bytes | None, path: str) -> list[str]:
        mine, others = plain_batches(ours or b""), plain_batches(real or b"")
        if len(mine) != len(others):
            return [f"{path}: {len(mine)} batches instead of {len(others)}: {mine} / {others}"]
        found = []
        for number, (one, other) in enumerate(zip(mine, others, strict=True)):
            for name in one | other:
                left, right = one.get(name), other.get(name)
                if left == right:
                    continue
                where = f"{path}[{number}].{name}"
                if name == "producer_id":
                    found += self._made(left, right, where)
                else:
                    found.append(f"{where}: {left!r} instead of {right!r}")
        return found


def _is_of_now(field: str, path: str, ours: Any, real: Any) -> bool:
    """Tell whether both are times of now, or told from now on, a little apart."""
    if field in FROM_NOW:
        return bool(min(ours, real) > 0 and abs(ours - real) < APART_MS)
    if field != "Timestamp" or not path.startswith("ListOffsetsResponse"):
        return False
    if abs(ours - real) >= APART_MS:
        return False
    now_ms = time.time() * 1000
    return all(abs(now_ms - one) < NOW_MS for one in (ours, real))


def without_chance(token: Any) -> Any:
    """Return a token of SASL without what the broker draws by lot; anything else as it is."""
    if not isinstance(token, bytes):
        return token
    token = _CHALLENGE.sub(b"r=(nonce),s=(salt),i=", token)
    return _PROOF.sub(b"v=(proof)", token)


def _is_name(field: str, value: Any) -> bool:
    """Tell whether a value may stand for another; of numbers only those that are made up."""
    return isinstance(value, (str, bytes)) or (field in MADE and isinstance(value, int))


def _is_made(value: Any) -> bool:
    """Tell whether a value may be made up, and is not the one for "none"."""
    if isinstance(value, int):
        return value >= 0
    return bool(value) and value != ZERO_UUID


def uuid_text(value: bytes) -> str:
    """Return an id as Kafka writes it."""
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def _short(answer: Any) -> str:
    text = repr(answer)
    return text if len(text) < 400 else f"{text[:400]}..."


def _without_the_moment(name: str, ours: Any, real: Any) -> tuple[Any, Any]:
    """Return both values of a field without the words, and the times, that each has of its own."""
    if name in SENTENCES:
        return bool(ours), bool(real)
    if name == "AuthBytes":
        return without_chance(ours), without_chance(real)
    if name in REASONS and ours and real:
        return _TIME.sub("(time)", ours), _TIME.sub("(time)", real)
    if name in TIMES and ours is not None and real is not None:
        return ours >= 0, real >= 0  # set or not
    return ours, real
