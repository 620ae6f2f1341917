"""RocketMQ's own integration tests, as it ships them, run against three brokers of ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from logstore.tools.dev.maven import PeerUnavailable
from logstore.tools.dev.rocketmq_jars import VERSION_5, compiled, fetch_suite, java
from tests.interop.conftest import missing

pytestmark = pytest.mark.interop

HERE = Path(__file__).parent
SOURCES = [HERE / "OurProcess.java", *sorted((HERE / "rocketmq_suite").glob("*.java"))]
SECONDS_MAX = 900
JVM = (
    "-Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 --add-opens=java.base/java.util=ALL-UNNAMED"
)
#: Classes below `org.apache.rocketmq.test`, by what they are about; in CI the quick ones stand for
#: the rest.
QUICK = {"batches": ("client.producer.batch.BatchSendIT",)}
SLOW = {
    "refusals": (
        "client.producer.async.AsyncSendExceptionIT",
        "client.producer.exception.msg.MessageExceptionIT",
        "client.producer.exception.producer.ProducerGroupAndInstanceNameValidityIT",
        "client.producer.oneway.OneWaySendExceptionIT",
        "client.producer.querymsg.QueryMsgByIdExceptionIT",
    ),
    "senders": (
        "client.producer.async.AsyncSendWithMessageQueueIT",
        "client.producer.async.AsyncSendWithMessageQueueSelectorIT",
        "client.producer.async.AsyncSendWithOnlySendCallBackIT",
        "client.producer.exception.msg.ChinaPropIT",
        "client.producer.exception.msg.MessageUserPropIT",
        "client.producer.oneway.OneWaySendIT", "client.producer.oneway.OneWaySendWithMQIT",
        "client.producer.oneway.OneWaySendWithSelectorIT",
        "client.producer.querymsg.QueryMsgByIdIT", "client.producer.querymsg.QueryMsgByKeyIT",
    ),
    "order": (
        "client.producer.order.OrderMsgDynamicRebalanceIT", "client.producer.order.OrderMsgIT",
        "client.producer.order.OrderMsgRebalanceIT", "client.producer.order.OrderMsgWithTagIT",
    ),
    "transactions": ("client.producer.transaction.TransactionalMsgIT",),
    "consumers": (
        "client.consumer.balance.NormalMsgDynamicBalanceIT",
        "client.consumer.balance.NormalMsgStaticBalanceIT",
        "client.consumer.cluster.DynamicAddAndCrashIT",
        "client.consumer.cluster.DynamicAddConsumerIT",
        "client.consumer.cluster.DynamicCrashConsumerIT",
        "client.consumer.topic.MulConsumerMulTopicIT",
        "client.consumer.topic.OneConsumerMulTopicIT",
    ),
    "tags": (
        "client.consumer.filter.SqlFilterIT", "client.consumer.tag.MulTagSubIT",
        "client.consumer.tag.TagMessageWith1ConsumerIT",
        "client.consumer.tag.TagMessageWithMulConsumerIT",
        "client.consumer.tag.TagMessageWithSameGroupConsumerIT",
    ),
    "broadcast": (
        "client.consumer.broadcast.normal.BroadcastNormalMsgNotReceiveIT",
        "client.consumer.broadcast.normal.BroadcastNormalMsgRecvCrashIT",
        "client.consumer.broadcast.normal.BroadcastNormalMsgRecvStartLaterIT",
        "client.consumer.broadcast.normal.BroadcastNormalMsgTwoDiffGroupRecvIT",
        "client.consumer.broadcast.normal.NormalMsgTwoSameGroupConsumerIT",
        "client.consumer.broadcast.order.OrderMsgBroadcastIT",
        "client.consumer.broadcast.tag.BroadcastTwoConsumerFilterIT",
        "client.consumer.broadcast.tag.BroadcastTwoConsumerSubDiffTagIT",
        "client.consumer.broadcast.tag.BroadcastTwoConsumerSubTagIT",
    ),
    "pops": (
        "client.consumer.pop.BatchAckIT", "client.consumer.pop.NotificationIT",
        "client.consumer.pop.PopBigMessageIT", "client.consumer.pop.PopMessageAndForwardingIT",
        "client.consumer.pop.PopOrderlyIT", "retry.PopConsumerRetryIT",
    ),
    "priorities": ("client.consumer.pop.PopPriorityIT",),
    "delays": (
        "delay.NormalMsgDelayIT", "recall.RecallWithTraceIT", "recall.SendAndRecallDelayMessageIT",
    ),
    "offsets": (
        "offset.LagCalculationIT", "offset.OffsetResetForPopIT", "offset.OffsetResetIT",
    ),
    "settings": (
        "route.CreateAndUpdateTopicIT", "smoke.NormalMessageSendAndRecvIT",
    ),
    "static-topics": ("statictopic.StaticTopicIT",),
    "tls": ("tls.TlsIT", "tls.TlsMix2IT", "tls.TlsMixIT"),
    "proxy": ("grpc.v2.OurProxyIT",),
    "their-proxy": ("grpc.v2.ClusterGrpcIT",),
}  # fmt: skip
#: They look into the objects of a real broker (one wakes a service of it that has five minutes'
#: sleep, and one has it register at once).
PASSED_OVER = (
    "testDeleteTopicFromNameSrvWithBrokerRegistration", "testEstimateLag", "testRemappingAndClear",
    "testResetOffsetThenAckOldForPopOrderly", "testRestOffsetToSkipMsgForPopOrderly",
)  # fmt: skip
ALL = [
    *(pytest.param(names, id=about) for about, names in QUICK.items()),
    *(pytest.param(names, id=about, marks=pytest.mark.slow) for about, names in SLOW.items()),
]


@pytest.mark.timeout(SECONDS_MAX + 100)
@pytest.mark.parametrize("names", ALL)
def test_rocketmqs_own_tests(names: tuple[str, ...], tmp_path: Path) -> None:
    """All tests of these classes hold; they share three brokers."""
    try:
        suite = fetch_suite(VERSION_5)
        classes = compiled(VERSION_5, SOURCES, suite)
        settings = {"python": sys.executable, "directory": str(tmp_path)}
        command = java(
            VERSION_5, "logstore.RunTests",
            *(f"org.apache.rocketmq.test.{name}" for name in names),
            *(f"-{name}" for name in PASSED_OVER),
            jvm=" ".join((JVM, *(f"-Dlogstore.{key}={value}" for key, value in settings.items()))),
            classes=f"{classes}:{suite}",
            home=tmp_path,
        )  # fmt: skip
    except PeerUnavailable as reason:
        missing(str(reason))
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert done.returncode == 0, f"{done.stdout[-8000:]}\n{done.stderr[-5000:]}"
