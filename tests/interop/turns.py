"""Which test process runs which interop test: the longest begin, and what shares brokers stays."""

from __future__ import annotations

from pathlib import PurePath

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

#: Files that take longest, the longest first: what begins late ends last, and alone.
LONGEST = (
    "test_rocketmq_clients.py", "test_demo.py", "test_rocketmq_proxy.py", "test_spark.py",
    "test_sql.py", "test_drawn_rocketmq_sessions.py", "test_drawn_sessions.py", "test_streams.py",
    "test_share_consumers.py", "test_access.py", "test_rocketmq_pop.py",
    "test_rocketmq_handover.py", "test_kafka_suite.py", "test_transactions.py", "test_files.py",
    "test_rocketmq_settings.py", "test_groups.py", "test_java_tools.py", "test_serve.py",
    "test_drawn_damage.py", "test_dump_log_segments.py", "test_metadata_log.py",
    "test_consumer_groups.py", "test_readme.py", "test_offset_admin.py", "test_security.py",
    "test_connect.py", "test_rocketmq_name_servers.py", "test_rocketmq_replication.py",
)  # fmt: skip
#: Files whose tests share the Spark session of a process.
ON_SPARK = {"test_spark.py", "test_sql.py"}
#: Files in which each test has brokers of its own.
APART = {
    "test_metadata_log.py", "test_readme.py", "test_rocketmq_handover.py",
    "test_rocketmq_kill.py", "test_rocketmq_name_servers.py", "test_rocketmq_replication.py",
}  # fmt: skip


def rank(file: PurePath) -> int:
    """Return at which turn the tests of a file begin."""
    return LONGEST.index(file.name) if file.name in LONGEST else len(LONGEST)


class Turns(LoadScopeScheduling):  # type: ignore[misc] # xdist carries no types
    """
    Hands out whole files, in the order of collection; those of :data:`APART` test by test.

    What shares a Spark session, which takes longer to start than most tests, is like one file.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        name = PurePath(file).name
        if name in ON_SPARK:
            return "spark"
        return nodeid if name in APART else file
