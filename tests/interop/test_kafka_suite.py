"""Integration tests of Kafka's own clients, tools and requests, as it ships them, against ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from logstore.tools.dev.kafka_peer import TOOL_JVM, VERSION_4, compiled, fetch_part, java
from logstore.tools.dev.maven import PeerUnavailable
from tests.interop.conftest import missing

pytestmark = pytest.mark.interop

HERE = Path(__file__).parent
SOURCES = [HERE / "OurProcess.java", *sorted((HERE / "kafka_suite").glob("*.java"))]
SECONDS_MAX = 2400
TEST_SECONDS_MAX = 100
#: Classes of tests; in CI the quick one stands for the rest.
QUICK = ("org.apache.kafka.tools.UserScramCredentialsCommandTest",)
SLOW = (
    "org.apache.kafka.clients.admin.AdminFenceProducersTest",
    "org.apache.kafka.clients.admin.AutoTopicCreationTest",
    "org.apache.kafka.clients.admin.ClientTelemetryTest",
    "org.apache.kafka.clients.admin.ConcurrentListOffsetsRequestTest",
    "org.apache.kafka.clients.admin.DeleteTopicTest",
    "org.apache.kafka.clients.admin.DescribeAuthorizedOperationsTest",
    "org.apache.kafka.clients.admin.DescribeProducersWithBrokerIdTest",
    "org.apache.kafka.clients.admin.DynamicGroupConfigIntegrationTest",
    "org.apache.kafka.clients.admin.ListOffsetsIntegrationTest",
    "org.apache.kafka.tools.AclCommandTest",
    "org.apache.kafka.tools.ClusterToolTest",
    "org.apache.kafka.tools.ConfigCommandIntegrationTest",
    "org.apache.kafka.tools.DeleteRecordsCommandTest",
    "org.apache.kafka.tools.FeatureCommandTest",
    "org.apache.kafka.tools.GetOffsetShellTest",
    "org.apache.kafka.tools.GroupsCommandTest",
    "org.apache.kafka.tools.LeaderElectionCommandTest",
    "org.apache.kafka.tools.LogDirsCommandTest",
    "org.apache.kafka.tools.ResetIntegrationTest",
    "org.apache.kafka.tools.TopicCommandTest",
    "org.apache.kafka.tools.consumer.ConsoleConsumerTest",
    "org.apache.kafka.tools.consumer.group.AuthorizerIntegrationTest",
    "org.apache.kafka.tools.consumer.group.DeleteConsumerGroupsTest",
    "org.apache.kafka.tools.consumer.group.DeleteOffsetsConsumerGroupCommandIntegrationTest",
    "org.apache.kafka.tools.consumer.group.DescribeConsumerGroupTest",
    "org.apache.kafka.tools.consumer.group.ListConsumerGroupTest",
    "org.apache.kafka.tools.consumer.group.ResetConsumerGroupOffsetTest",
    "org.apache.kafka.tools.reassign.ReassignPartitionsCommandTest",
    "org.apache.kafka.tools.streams.DeleteStreamsGroupOffsetTest",
    "org.apache.kafka.tools.streams.DeleteStreamsGroupTest",
    "org.apache.kafka.tools.streams.DescribeStreamsGroupTest",
    "org.apache.kafka.tools.streams.ListStreamsGroupTest",
    "org.apache.kafka.tools.streams.ResetStreamsGroupOffsetTest",
    "org.apache.kafka.clients.TransactionsExpirationTest",
    "org.apache.kafka.clients.ClientRebootstrapTest",
    "org.apache.kafka.clients.MetadataVersionIntegrationTest",
    "org.apache.kafka.clients.TransactionsWithMaxInFlightOneTest",
    "org.apache.kafka.clients.consumer.ConsumerBounceTest",
    "org.apache.kafka.clients.consumer.ConsumerIntegrationTest",
    "org.apache.kafka.clients.consumer.ConsumerTopicCreationTest",
    "org.apache.kafka.clients.consumer.PlaintextConsumerAssignTest",
    "org.apache.kafka.clients.consumer.PlaintextConsumerCallbackTest",
    "org.apache.kafka.clients.consumer.PlaintextConsumerCloseTest",
    "org.apache.kafka.clients.consumer.PlaintextConsumerCommitTest",
    "org.apache.kafka.clients.consumer.PlaintextConsumerFetchTest",
    "org.apache.kafka.clients.consumer.PlaintextConsumerPollTest",
    "org.apache.kafka.clients.consumer.PlaintextConsumerTest",
    "org.apache.kafka.clients.consumer.PlaintextConsumerSubscriptionTest",
    "org.apache.kafka.clients.consumer.SaslPlainPlaintextConsumerTest",
    "org.apache.kafka.clients.consumer.ShareConsumerTest",
    "org.apache.kafka.clients.producer.ProducerCompressionTest",
    "org.apache.kafka.clients.producer.ProducerFailureHandlingTest",
    "org.apache.kafka.clients.producer.ProducerIdExpirationTest",
    "org.apache.kafka.clients.producer.ProducerIntegrationTest",
    "org.apache.kafka.clients.producer.ProducerSendWhileDeletionTest",
    "kafka.admin.AddPartitionsTest",
    "kafka.api.AuthorizerIntegrationTest",
    "kafka.api.PlaintextAdminIntegrationTest",
    "kafka.api.PlaintextConsumerAssignorsTest",
    "kafka.api.PlaintextConsumerTest",
    "kafka.api.PlaintextProducerSendTest",
    "kafka.api.SslConsumerTest",
    "kafka.api.TransactionsBounceTest",
    "kafka.api.TransactionsTest",
    "kafka.server.AddPartitionsToTxnRequestServerTest",
    "kafka.server.AlterUserScramCredentialsRequestTest",
    "kafka.server.ApiVersionsResponseIntegrationTest",
    "kafka.server.ConsumerGroupDescribeRequestTest",
    "kafka.server.ConsumerGroupHeartbeatRequestTest",
    "kafka.server.ConsumerProtocolMigrationTest",
    "kafka.server.CreateTopicsRequestTest",
    "kafka.server.DelegationTokenRequestsOnPlainTextTest",
    "kafka.server.DeleteGroupsRequestTest",
    "kafka.server.DeleteRecordsRequestTest",
    "kafka.server.DeleteTopicsRequestTest",
    "kafka.server.DeleteTopicsRequestWithDeletionDisabledTest",
    "kafka.server.DescribeGroupsRequestTest",
    "kafka.server.DescribeUserScramCredentialsRequestTest",
    "kafka.server.EdgeCaseRequestTest",
    "kafka.server.FetchRequestMaxBytesTest",
    "kafka.server.FetchRequestTest",
    "kafka.server.HeartbeatRequestTest",
    "kafka.server.JoinGroupRequestTest",
    "kafka.server.LeaveGroupRequestTest",
    "kafka.server.ListGroupsRequestTest",
    "kafka.server.ListOffsetsRequestTest",
    "kafka.server.OffsetCommitRequestTest",
    "kafka.server.OffsetDeleteRequestTest",
    "kafka.server.OffsetFetchRequestTest",
    "kafka.server.OffsetsForLeaderEpochRequestTest",
    "kafka.server.ProduceRequestTest",
    "kafka.server.ShareFetchAcknowledgeRequestTest",
    "kafka.server.ShareGroupDescribeRequestTest",
    "kafka.server.ShareGroupHeartbeatRequestTest",
    "kafka.server.StreamsGroupDescribeRequestTest",
    "kafka.server.StreamsGroupHeartbeatRequestTest",
    "kafka.server.SyncGroupRequestTest",
    "kafka.server.TxnOffsetCommitRequestTest",
    "kafka.server.WriteTxnMarkersRequestTest",
    "logstore.NamelessAdminTest",
    "org.apache.kafka.server.MetadataRequestTest",
    "org.apache.kafka.server.config.DynamicConfigTest",
    "org.apache.kafka.server.log.LogAppendTimeTest",
    "org.apache.kafka.server.quota.ClientQuotasRequestTest",
)
#: Those of Kafka Streams.
STREAMS = (
    "AdjustStreamThreadCountTest",
    "AtLeastOnceDeliveryMessageLossIntegrationTest",
    "DeadLetterQueueIntegrationTest",
    "EOSUncleanShutdownIntegrationTest",
    "EosIntegrationTest",
    "FineGrainedAutoResetIntegrationTest",
    "GlobalKTableEOSIntegrationTest",
    "GlobalKTableIntegrationTest",
    "HandlingSourceTopicDeletionIntegrationTest",
    "InternalTopicIntegrationTest",
    "JoinWithIncompleteMetadataIntegrationTest",
    "KStreamRepartitionIntegrationTest",
    "KTableSourceTopicRestartIntegrationTest",
    "KafkaStreamsCloseOptionsIntegrationTest",
    "PurgeRepartitionTopicIntegrationTest",
    "RebalanceIntegrationTest",
    "RebalanceProtocolMigrationIntegrationTest",
    "RegexSourceIntegrationTest",
    "ResetPartitionTimeIntegrationTest",
    "RestoreIntegrationTest",
    "SmokeTestDriverIntegrationTest",
    "StandbyTaskCreationIntegrationTest",
    "StandbyTaskEOSIntegrationTest",
    "SwallowUnknownTopicErrorIntegrationTest",
    "TaskAssignorIntegrationTest",
)
#: What of them is not run, and why; of any class, if none is named.
PASSED_OVER = (
    # they look into the objects of a real broker, at its files, at what is logged for information
    "shouldResizeCacheAfterThread.*",
    "test.*ConsumerCloseOnBrokerShutdown", "testBasicTransactions",
    "test(Alter|Describe)ReplicaLogDirs", "test.*LogDirsAfterDeleteRecords", "testDescribeLogDirs",
    "testRenewAcknowledgement.*", "testLogStartOffsetAfterDeleteRecords",
    "testGroupConfigEvaluatedAfterBrokerRestart", "testDeleteRecordsAfterCorruptRecords",
    "testUpdateBrokerConfigNotAffectedByInvalidConfig",
    "testBumpTransactionalEpochWithTV2.*", "testCorruptLz4ProduceRequest",
    "testDelayedFetchIncludesAbortedTransaction", "testFailureToFenceEpoch",
    "testRecoveryFromEpochOverflow", "testSingleCoordinatorOwnershipAfterPartitionReassignment",
    "testDeleteTopicWithCleaner", "testDeleteTopicDuringAddPartition",
    "test.*QuotaMetricsNotCreatedIfNoQuotasConfigured", "testAlterIpQuotasRequest",
    # so do these, of several nodes
    "testElectPreferredLeaders", "testCreateTopicsReturnsConfigs",
    "testReplicaCanFetchFromLogStartOffsetAfterDeleteRecords",
    # they count the settings that the harness has, or look for one inside of a broker
    "testDescribeAndAlterConfigs", "testNullConfigs",
    # no replica ever lacks what another has
    "testProducerRebootstrap",
    # they bring classes of their own; in the harness of `MetadataRequestTest` there is one rack
    "testRackAwareAssignment", "MetadataRequestTest#testRack",
    # nothing is ever being reassigned, and there is one data directory
    "testDescribeUnderReplicatedPartitionsWhenReassignmentIsInProgress", "testCancellationWith.*",
    "testAlterLogDirReassignmentThrottle", "testLogDirReassignment",
    # nobody collects the metrics of clients
    "testClientInstanceId",
    # listeners are as they were at the start, nobody listens for controllers, nothing is tiered
    "test.*BootstrapController.*", "testDynamicBrokerConfigUpdateUsingKraft",
    "testUpdatePerBrokerConfigWithListenerName.*", "testGetOffsetsBy.*(Local|Tiered)Spec",
    # loggers have other names than Java's, and refusals other words than Kafka's
    ".*Log4jLogLevels.*", "testBrokerLoggerConfigUpdate",
    "test(Valid|Invalid)IncrementalAlterConfigs",
    # versions that no release has finished, and `kraft.version`, which stays 0
    "testDowngradeMetadataVersionWithKRaft", "testDescribeWithKRaft", "testDescribeWithUnstable.*",
    "testUpgradeWithReleaseVersion", "testDefaultIsLatestVersion",
    # there are no users by Kerberos
    "test(Expire|Create).*Token.*", "testExpiredTimeStampLargerThanMaxLifeStamp",
    "testAclAuthorizationDenied", "testCreateTopicsResponseMetadataAndConfig",
    # without a topic of offsets there is a coordinator all the same
    "testGroupErrors", "testStreamsGroupHeartbeatIsInaccessibleWhenOffsetTopicNotExist",
    # the topics of a pattern are found at once, not by a later heartbeat
    "testConsumerGroupHeartbeatWithRegex.*", "testConsumerGroupHeartbeatWithRegularExpression",
)  # fmt: skip
_ALL_SLOW = (*SLOW, *(f"org.apache.kafka.streams.integration.{name}" for name in STREAMS))
ALL = [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in _ALL_SLOW)]


@pytest.mark.timeout(SECONDS_MAX + 100)
@pytest.mark.parametrize("name", ALL)
def test_kafkas_own_tests(name: str, tmp_path: Path) -> None:
    """Each test of the class has a broker of its own, and all of them hold."""
    try:
        suite = f"{fetch_part('suite', VERSION_4)}:{fetch_part('streams', VERSION_4)}"
        classes = compiled(VERSION_4, SOURCES, suite)
    except PeerUnavailable as reason:
        missing(str(reason))
    settings = {"python": sys.executable, "directory": str(tmp_path)}
    given = " ".join(f"-Dlogstore.{key}={value}" for key, value in settings.items())
    given += f" -Djava.io.tmpdir={tmp_path}"
    limits = {
        "junit.jupiter.extensions.autodetection.enabled": "true",
        "junit.jupiter.execution.timeout.default": f"{TEST_SECONDS_MAX}s",
    }
    arguments = ["execute", "-c", name, "--details=testfeed"]
    arguments += ["--fail-if-no-tests", "--exclude-methodname", f".*({_passed_over()})"]
    arguments += [word for key, value in limits.items() for word in ("--config", f"{key}={value}")]
    command = java(
        VERSION_4, "org.junit.platform.console.ConsoleLauncher", *arguments,
        jvm=f"{TOOL_JVM} {given}", classes=f"{classes}:{suite}",
    )  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-5000:]}"


def _passed_over() -> str:
    """Return the pattern of what is not run: methods of any class, or of the one that is named."""
    return "|".join(one if "#" in one else f"#{one}" for one in PASSED_OVER)
