"""Who comes by a listener with logins says who he is: in order or not, rightly or nearly so."""

from __future__ import annotations

from typing import Any

from tests.interop.drawn import bearers
from tests.interop.drawn.anything import body_of
from tests.interop.drawn.pair import Pair
from tests.interop.drawn.scram_talk import ScramTalk
from tests.interop.drawn.twin import Answer
from tests.interop.drawn.world import World
from tests.interop.security_stage import MECHANISMS, PASSWORDS

#: what is said before or after does not end by itself: SHORT has sessions with an end
LISTENERS = ("SASL", "SASL", "SHORT")
NO_MECHANISMS = ("GSSAPI", "plain", "", "SCRAM-SHA-1", " PLAIN", "\u00fc", "SCRAM-SHA-256 ")
PLAIN_TOKENS = (
    *[b"\0alice\0alice-secret"] * 12, b"\0alice\0wrong", b"alice\0alice\0alice-secret",
    b"bob\0alice\0alice-secret", b'\0b,o=b "x"\0pass word', b"\0\0x", b"\0alice\0", b"", b"\0\0",
    b"alice\0alice-secret", b"\0alice\0alice-secret\0", b"a\0b\0c\0d\0e", b"\0alice\0\xff\xfe",
    b"\xff\0alice\0alice-secret", b"\0ALICE\0alice-secret", b"\0alice\0alice-secret ", b"\0",
    b"\0\xc3\xbc\0x", b"\xed\xa0\x80\0alice\0alice-secret",
)  # fmt: skip
#: frames that are no requests, or ones that nobody serves
FRAMES = (
    b"", b"\0", b"GET / HTTP/1.1", b"\x60\x82", b"\0\x11\0\x09\0\0\0\1\0\0",
    b"\0\x24\0\x09\0\0\0\1\0\0",
    b"\0\x12\0\x63\0\0\0\1\0\1a", b"\3\xe7\0\0\0\0\0\1\0\0", b"\xff\xff\0\0\0\0\0\1\0\0",
    b"\0\x12\0\3\0\0\0\1", b"\0\x11\0\0\0\0\0\1\xff\xff", b"\0\x12\0\0\0\0\0\1\0\x50a",
)  # fmt: skip
#: rules that cannot be read, and what comes twice, are refused in another way there (SKIPPED.md)
NOT_OUT_OF_PLACE = frozenset(
    ("CreateAcls", "DeleteAcls", "DescribeAcls", "Produce", "WriteTxnMarkers", "SaslAuthenticate")
)
SOFTWARE = (*["drawn"] * 6, "", " ", "a b", "a/b", "-a", "a.b-c1", "\u00fc", "a" * 300)


class Login:
    """One connection to each broker, and what has been said on it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.line = f"{world.pick(*LISTENERS)} login"
        #: tokens stand in no requests
        self.is_raw = False
        self.is_known = False

    def shake_hands(self, mechanism: str, version: int | None = None) -> bool:
        """Name a mechanism; tell whether it may go on."""
        version = self.world.pick(0, 1, 1, 1) if version is None else version
        self.is_raw = version == 0
        answer = self.world.ask("SaslHandshake", {"Mechanism": mechanism}, version, self.line)
        return bool(answer.get(lambda told: told["ErrorCode"]) == 0)

    def say(self, token: Any) -> Any:
        """Send a token; return what comes back, None if it is no token."""
        if self.is_raw:
            return _told(self.world.twin.ask_frame(token, self.line))
        body = {"AuthBytes": token}
        answer = self.world.ask("SaslAuthenticate", body, None, self.line)
        if answer.get(lambda told: told["ErrorCode"], -1):
            return None
        return answer.made(lambda told: told["AuthBytes"])

    def by(self, mechanism: str) -> None:
        """Go through what a mechanism asks for."""
        self.is_known = False
        if mechanism == "PLAIN":
            self.is_known = self.say(self.world.pick(*PLAIN_TOKENS)) is not None
        elif mechanism == "OAUTHBEARER":
            self._by_bearer()
        else:
            self._by_scram(ScramTalk.drawn(self.world, mechanism))

    def _by_scram(self, talk: ScramTalk) -> None:
        challenges = self.say(talk.first())
        if challenges and all(one.startswith(b"r=") for one in challenges):
            self.is_known = self.say(talk.final(challenges)) is not None

    def _by_bearer(self) -> None:
        for _ in range(3):
            answers = self.say(bearers.message(self.world))
            if answers is None:
                return
            self.is_known = not any(answers)
            if self.is_known:
                return
            if self.world.likely(0.7):
                self.say(b"\1")
                return

    def look(self) -> None:
        """Ask something of the broker: who is known is served."""
        world = self.world
        api, body = world.pick(
            ("Metadata", {"Topics": []}), ("ApiVersions", versions(world)),
            ("SaslAuthenticate", {"AuthBytes": b"\0alice\0alice-secret"}),
            ("SaslHandshake", {"Mechanism": "PLAIN"}), ("FindCoordinator", {"Key": "a"}),
            ("DescribeCluster", {}),
        )  # fmt: skip
        version = 1 if api in {"FindCoordinator"} else None
        world.ask(api, body, version, self.line)

    def end(self) -> None:
        """Hang up."""
        self.world.twin.hang_up(self.line)


def _told(answer: Answer) -> Any:
    if isinstance(answer.ours, bytes) and isinstance(answer.real, bytes):
        return Pair(answer.ours, answer.real)
    return None


def versions(world: World) -> dict[str, Any]:
    """Draw what a client says of itself."""
    return {
        "ClientSoftwareName": world.pick(*SOFTWARE),
        "ClientSoftwareVersion": world.pick(*SOFTWARE),
    }


def log_in(world: World) -> None:
    """Say who one is by some mechanism, go on, and authenticate anew where sessions have an end."""
    login = Login(world)
    for _ in range(world.pick(0, 0, 0, 0, 1, 2)):
        world.ask("ApiVersions", versions(world), None, login.line)
    mechanism = world.pick(*MECHANISMS)
    if login.shake_hands(mechanism):
        login.by(mechanism)
        for _ in range(world.pick(1, 1, 2)):
            login.look()
        if login.is_known and world.likely(0.6):
            anew(login, mechanism)
    login.end()


def anew(login: Login, mechanism: str) -> None:
    """Authenticate anew, most often by the same mechanism; what comes then is served or not."""
    world = login.world
    again = mechanism if world.likely(0.75) else world.pick(*MECHANISMS, *NO_MECHANISMS)
    if login.shake_hands(again):
        login.by(again if again in MECHANISMS else mechanism)
    login.look()


def name_any_mechanism(world: World) -> None:
    """Name a mechanism that there is not, most often."""
    login = Login(world)
    if login.shake_hands(world.pick(*NO_MECHANISMS, *MECHANISMS)):
        login.say(world.pick(*PLAIN_TOKENS))
    login.look()
    login.end()


def ask_too_early(world: World) -> None:
    """Ask for something else in place of the handshake, of the token, or of the second token."""
    login = Login(world)
    mechanism = world.pick(*MECHANISMS)
    stage = world.pick(0, 1, 1, 1, 2)
    is_there = stage == 0 or login.shake_hands(mechanism, 1)
    if stage == 2 and is_there and mechanism.startswith("SCRAM"):
        talk = ScramTalk(world, "alice", PASSWORDS["alice"], mechanism)
        is_there = login.say(talk.first()) is not None
    if is_there:
        api = world.chance.choice(sorted(set(world.versions) - NOT_OUT_OF_PLACE))
        version = world.version(api)
        world.ask(api, body_of(world, api, version), version, login.line)
        login.look()
    login.end()


def send_nonsense(world: World) -> None:
    """Send bytes that are no request, before the handshake or after it."""
    login = Login(world)
    if world.likely(0.5):
        login.shake_hands(world.pick(*MECHANISMS))
    world.twin.ask_frame(world.pick(*FRAMES), login.line)
    login.look()
    login.end()


def all_at_once(world: World) -> None:
    """Do not wait for any answer: handshake, token and what comes behind go together."""
    login = Login(world)
    versions_first = ("ApiVersions", world.version("ApiVersions"), versions(world))
    token = world.pick(*PLAIN_TOKENS)
    questions: list[tuple[str, int, dict[str, Any]]] = [
        ("SaslHandshake", 1, {"Mechanism": world.pick(*["PLAIN"] * 8, "GSSAPI")}),
        ("SaslAuthenticate", world.version("SaslAuthenticate"), {"AuthBytes": token}),
        ("Metadata", 1, {"Topics": []}),
        ("SaslAuthenticate", 1, {"AuthBytes": token}),
    ]
    if world.likely(0.4):
        questions.insert(0, versions_first)
    if world.likely(0.2):
        world.chance.shuffle(questions)
    world.twin.ask_together(questions[: world.pick(2, 3, 4, 5)], login.line)
    login.end()
