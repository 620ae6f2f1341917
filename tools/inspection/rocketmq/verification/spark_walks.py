"""The pieces of a RocketMQ store in Spark's workers: what crosses the JVM is what was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from logstore.compat.spark.worker_tasks import run_in_workers
from logstore.tools.inspection.rocketmq.verification.range_walk import (
    Piece,
    PieceOutcome,
    run_pieces,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from logstore.tools.inspection.rocketmq.verification.walked_log import Progress

#: how many pieces the driver asks for at a time: what was found in them it holds
_PIECES_AT_A_TIME = 4_096
_RANGE_BYTES = 64 * 1024 * 1024


@attrs.frozen
class SparkWalks:
    """Walks in the workers of a session, which must see the same files under the same names."""

    spark: SparkSession
    range_bytes: int = _RANGE_BYTES

    def __call__(
        self, pieces: Sequence[Piece], progress: Progress | None
    ) -> Iterator[PieceOutcome]:
        """Yield what became of each piece, in their order."""
        total = sum(piece.size_bytes for piece in pieces)
        before = 0
        for start in range(0, len(pieces), _PIECES_AT_A_TIME):
            wave = pieces[start : start + _PIECES_AT_A_TIME]

            def tell(done: int, _: int, before: int = before) -> None:
                if progress is not None:
                    progress(before + done, total)

            yield from run_in_workers(self.spark, run_pieces, wave, tell)
            before += sum(piece.size_bytes for piece in wave)
