"""Access control: with the same rules alice is answered by our broker what the real one answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from logstore.tools.dev.kafka_peer import free_port_pair
from tests.interop.access_requests import REQUESTS, RIGHTS
from tests.interop.access_session import AccessSession
from tests.interop.access_wire import (
    AUTHORIZER,
    Asker,
    OurSpeaker,
    RealSpeaker,
    open_ours,
    sasl_settings,
)
from tests.interop.conftest import start_real

pytestmark = pytest.mark.interop
SETTINGS = {"transaction.state.log.num.partitions": 1, "log.retention.ms": -1}
