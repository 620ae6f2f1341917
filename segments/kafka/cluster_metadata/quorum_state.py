"""
``quorum-state``: the last election that a voter of the metadata log took part in.

One line of JSON. Version 0 is that of a static quorum, whose voters the broker's settings name;
version 1 that of one whose voters stand in the log itself (KIP-853)::

    {"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,
     "currentVoters":[{"voterId":1}],"data_version":0}
    {"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",
     "data_version":1}

Source: ``FileQuorumStateStore``, ``QuorumStateData.json``.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from logstore.errors import CorruptFileError
from logstore.host import FileSystem, read_file, write_file
from logstore.segments.kafka.kafka_uuid import ZERO, uuid_to_text

FILE_NAME = "quorum-state"

_NOBODY = -1
_VERSIONS = (0, 1)


class QuorumState(NamedTuple):
    """Who leads in which epoch, as far as this voter knows. `version` is that of the file."""

    leader_id: int
    leader_epoch: int
    version: int = 0

    @classmethod
    def read(cls, fs: FileSystem, directory: str) -> QuorumState | None:
        """
        Return what the file in `directory` says, None where it was never written.

        Raises:
            CorruptFileError: it says something else.

        """
        path = f"{directory}/{FILE_NAME}"
        data = read_file(fs, path) if fs.exists(path) else b""
        if not any(data):
            return None
        try:
            found: Any = json.loads(data)
            state = cls(
                int(found["leaderId"]), int(found["leaderEpoch"]), int(found["data_version"])
            )
        except (ValueError, TypeError, KeyError) as error:
            raise CorruptFileError(path, f"no state of a quorum ({error!r})") from error
        if state.version not in _VERSIONS:
            raise CorruptFileError(path, f"unknown version {state.version}")
        return state

    def write(self, fs: FileSystem, directory: str, *, sync: bool = True) -> None:
        """Replace the file: the leader is the only voter."""
        if self.version == 0:
            found: dict[str, Any] = {
                "clusterId": "",
                "leaderId": self.leader_id,
                "leaderEpoch": self.leader_epoch,
                "votedId": _NOBODY,
                "appliedOffset": 0,
                "currentVoters": [{"voterId": self.leader_id}],
                "data_version": 0,
            }
        else:
            found = {
                "leaderId": self.leader_id,
                "leaderEpoch": self.leader_epoch,
                "votedId": _NOBODY,
                "votedDirectoryId": uuid_to_text(ZERO),
                "data_version": self.version,
            }
        content = json.dumps(found, separators=(",", ":")).encode()
        write_file(fs, f"{directory}/{FILE_NAME}", content, sync=sync)
