"""
Commands of mqadmin 5.5.0 print the same of our broker as of a real one, good and bad arguments.

Both have seen the same traffic: topics with ordered, delayed, timed, transactional and popped
messages, dead letters, groups whose consumers are there and one whose consumer has left. What
``test_rocketmq_clients`` compares is not repeated, and of the commands for users and rules
(``test_rocketmq_access``) only what is missing there. What is right to differ stands in SKIPPED.md.
"""

from __future__ import annotations

import difflib
import json
import re
import shlex
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.interop.java_programs import rocketmq_program
from tests.interop.rocketmq_access_session import PROVIDERS
from tests.interop.rocketmq_programs import JAVA_SOURCES, Broker, Sections, run_program
from tests.interop.rocketmq_sessions import started

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

SOURCES = [*JAVA_SOURCES, Path(__file__).parent / "rocketmq_java_5" / "AdminStage.java"]
SETTINGS: dict[str, object] = {
    **PROVIDERS,
    "traceTopicEnable": "true",
    "transactionCheckInterval": 3_600_000,
    "transactionTimeOut": 60_000,
}
#: a line each; {n} is the option that names the name server, {g} what names of topics and groups
#: begin with, and $... what the program has remembered of a message
LOOKS = """
topicList {n}
topicList {n} -c
topicRoute {n} -t {g}_plain -l
topicRoute {n} -t none
topicStatus {n} -t {g}_plain
topicStatus {n} -t {g}_empty -c DefaultCluster
topicStatus {n} -t none
topicStatus {n} -t SCHEDULE_TOPIC_XXXX
topicStatus {n} -t %DLQ%{g}_failing
topicClusterList {n} -t none
brokerStatus {n} -b {b}
clusterList {n} -c NoCluster
clusterList {n} -m
producerConnection {n} -g {g}_producers -t {g}_plain
producerConnection {n} -g none -t {g}_plain
producerConnection {n} -g {g}_producers -t none
consumerConnection {n} -g {g}_online
consumerConnection {n} -g {g}_orderly -b {b}
consumerConnection {n} -g {g}_listeners
consumerConnection {n} -g {g}_poppers
consumerConnection {n} -g {g}_lite
consumerConnection {n} -g {g}_left
consumerProgress {n}
consumerProgress {n} -c DefaultCluster
consumerProgress {n} -g {g}_online -s true
consumerProgress {n} -g {g}_left -t {g}_plain
consumerProgress {n} -g {g}_left -t none
consumerProgress {n} -g {g}_poppers -s true
consumerProgress {n} -g {g}_lite
consumerProgress {n} -g none
consumerStatus {n} -g {g}_online
consumerStatus {n} -g {g}_online -i nobody
consumerStatus {n} -g {g}_orderly
consumerStatus {n} -g {g}_left
statsAll {n}
statsAll {n} -t {g}_plain
brokerConsumeStats {n} -b {b} -l 1 -o true
queryMsgById {n} -i $plain.offset-id -t {g}_plain
queryMsgById {n} -i $plain.id -t {g}_plain
queryMsgById {n} -i nonsense -t {g}_plain
queryMsgById {n} -i $plain.offset-id -g {g}_online -d nobody -t {g}_plain
queryMsgByKey {n} -t {g}_plain -k shared -m 3
queryMsgByKey {n} -t {g}_plain -k none
queryMsgByKey {n} -t none -k none
queryMsgByKey {n} -t {g}_plain -k shared -b 0 -e $time
queryMsgByKey {n} -t {g}_decided -k rollback
queryMsgByKey {n} -t {g}_delayed -k delay1
queryMsgByUniqueKey {n} -t {g}_plain -i $plain.id
queryMsgByUniqueKey {n} -t {g}_plain -i $plain.id -a
queryMsgByUniqueKey {n} -t {g}_plain -i nonsense
queryMsgByUniqueKey {n} -t {g}_delayed -i $delayed1.id -a
queryMsgByUniqueKey {n} -t {g}_delayed -i $timed.id
queryMsgByUniqueKey {n} -t {g}_decided -i $commit.id
queryMsgByOffset {n} -t {g}_plain -b broker-a -i 1 -o 99
queryMsgByOffset {n} -t none -b broker-a -i 1 -o 0
queryMsgByOffset {n} -t SCHEDULE_TOPIC_XXXX -b broker-a -i 17 -o 0
queryMsgByOffset {n} -t %DLQ%{g}_failing -b broker-a -i 0 -o 0
printMsg {n} -t {g}_plain -s A
printMsgByQueue {n} -t {g}_plain -a broker-a -i 0 -f true -s "A || B"
queryCq {n} -t {g}_plain -q 1 -i 1 -c 3 -g {g}_online
queryCq {n} -t {g}_plain -q 1 -i 1 -c 3 -g {g}_left
queryCq {n} -t {g}_plain -q 1 -i 99
queryCq {n} -t none -q 9 -i 0 -b {b}
consumeMessage {n} -t {g}_plain -b broker-a -i 1 -o 99 -c 2
consumeMessage {n} -t {g}_plain -s $time -e 9999999999999
consumeMessage {n} -t none
getConsumerStatus {n} -g {g}_online -t {g}_plain
getConsumerStatus {n} -g none -t {g}_plain
getConsumerConfig {n} -g {g}_poppers
exportConfigs {n} -c DefaultCluster -f {dir}
exportMetadata {n} -c DefaultCluster -f {dir}
exportMetadata {n} -b {b} -f {dir}/topics -t -s
exportMetadata {n} -b {b} -f {dir}/groups -g
exportPopRecord -c DefaultCluster
getSyncStateSet {n} -a {server} -b broker-a
getControllerConfig {n} -a {server}
addBroker {n} -c {b} -b none
removeBroker {n} -c {b} -b DefaultCluster:broker-a:0
queryMsgTraceById {n} -i $plain.id -t RMQ_SYS_TRACE_TOPIC
"""
CHANGES = """
updateTopic {n} -b {b} -t made -r 3 -w 2 -p 4
updateTopic {n} -c DefaultCluster -t made2 -o true
updateTopic {n} -b {b} -t made3 -u true -s true -a +message.type=FIFO
updateTopic {n} -b {b} -t made3 -a -message.type
updateTopic {n} -b {b} -t made3 -a +nonsense=1
updateTopic {n} -b {b} -t made4 -a +message.type=NONSENSE
updateTopic {n} -b {b} -t "bad topic"
updateTopic {n} -b {b} -t SCHEDULE_TOPIC_XXXX
updateTopic {n} -b {b} -t made4 -p 9
updateTopicList {n} -b {b} -f {dir}/topics.json
updateTopicPerm {n} -t made -p 2 -c DefaultCluster
updateTopicPerm {n} -t none -p 6
topicRoute {n} -t made
topicRoute {n} -t made2
topicRoute {n} -t made3
topicRoute {n} -t listed
updateOrderConf {n} -t made -m get
updateOrderConf {n} -t made2 -m get
updateSubGroup {n} -b {b} -g made -s false -m false -d false -o true -q 3 -r 5 -i 1 -w 2 -a false
updateSubGroup {n} -b {b} -g made2 -p '{"type":"CUSTOMIZED","customizedRetryPolicy":{"next":[1]}}'
updateSubGroup {n} -b {b} -g "bad group"
updateSubGroupList {n} -c DefaultCluster -f {dir}/groups.json
getConsumerConfig {n} -g made
getConsumerConfig {n} -g made2
getConsumerConfig {n} -g listed
setConsumeMode {n} -b {b} -t none -g none -m POP -q 1
deleteSubGroup {n} -c DefaultCluster -g gone
sendMessage {n} -t {g}_plain -p hello -b broker-a -i 99
sendMessage {n} -t "bad topic" -p hello
sendMessage {n} -t made2 -p traced -k traced -m true -b broker-a -i 0
resetOffsetByTime {n} -g {g}_left -t {g}_plain -s $time
consumerProgress {n} -g {g}_left
resetOffsetByTime {n} -g {g}_left -t none -s -1
resetOffsetByTime {n} -g none -t {g}_plain -s -1
resetOffsetByTime {n} -g {g}_left -t {g}_plain -s -1 -b broker-a -q 9 -o 1
resetOffsetByTime {n} -g {g}_left -t {g}_plain -s -1 -b broker-a -q 1 -o 999
resetOffsetByTime {n} -g {g}_online -t {g}_plain -s $time -c true
resetOffsetByTimeOld {n} -g {g}_left -t {g}_plain -s -1
skipAccumulatedMessage {n} -g {g}_left -t {g}_plain
skipAccumulatedMessage {n} -g none -t {g}_plain
cloneGroupOffset {n} -s {g}_left -d cloned -t {g}_plain -o true
cloneGroupOffset {n} -s {g}_left -d {g}_online -t {g}_plain
cloneGroupOffset {n} -s none -d cloned -t {g}_plain
consumerProgress {n} -g cloned
deleteKvConfig {n} -s none -k a
updateNamesrvConfig {n} -k scanNotActiveBrokerInterval -v 6000
updateNamesrvConfig {n} -k kvConfigPath -v none
updateBrokerConfig {n} -c DefaultCluster -a true -k waitTimeMillsInSendQueue -v 557
updateBrokerConfig {n} -b {b} -k brokerConfigPath -v none
wipeWritePerm {n} -b broker-z
deleteExpiredCommitLog {n} -c DefaultCluster
setCommitLogReadAheadMode {n} -b {b} -m 7
updateColdDataFlowCtrGroupConfig {n} -b {b} -g {g}_left -v x
createUser {n} -b {b} -u bob -p pw
createUser {n} -b {b} -u eve -p pw -t What
updateUser {n} -b {b} -u bob -s What
copyUser {n} -f {b} -t {b}
copyUser {n} -f {b} -t {b} -u nobody
createAcl {n} -b {b} -s User:bob -r Nothing:a -a Pub -d Allow
createAcl {n} -b {b} -s User:bob -r Topic:b -a Pub -d Allow
copyAcl {n} -f {b} -t {b} -s User:bob
deleteAcl {n} -c DefaultCluster -s User:bob -r Topic:none
deleteUser {n} -b {b} -u nobody
deleteTopic {n} -c DefaultCluster -t made
deleteTopic {n} -c DefaultCluster -t none
deleteTopic {n} -c DefaultCluster -t SCHEDULE_TOPIC_XXXX
topicRoute {n} -t made
"""
COMMANDS = [line for line in (LOOKS + CHANGES).splitlines() if line]
TOPIC = {
    "readQueueNums": 2, "writeQueueNums": 3, "perm": 6, "topicFilterType": "SINGLE_TAG",
    "topicSysFlag": 0, "order": False,
}  # fmt: skip
#: what differs from run to run, or from machine to machine
MASKS = (
    (r"\s+", " "),
    (r"127\.0\.0\.1:\d+|(\d+\.){3}\d+(:\d+)?", "ADDRESS"),
    (r"\b[0-9A-F]{32,56}\b", "ID"),
    (r"\d{4}-\d\d-\d\d[ #]\d\d:\d\d:\d\d([,:]\d+)?", "TIME"),
    (r"\b1[78]\d{11}\b", "MS"),
    (r"Consume TPS: .*", "Consume TPS"),
    (r"(CLUSTERING|BROADCASTING|OFFLINE) -?\d+", r"\1"),
    (r"spentTimeMills=\d+|CommitLog Offset: \d+", ""),
)


def line_of(command: str, broker: Broker, directory: Path) -> str:
    """Return a command as the program reads it."""
    for name, value in (
        ("{n}", f"-n {broker.bootstrap}"), ("{server}", broker.bootstrap),
        ("{b}", broker.broker_address), ("{dir}", str(directory)), ("{g}", "adm_stage"),
    ):  # fmt: skip
        command = command.replace(name, value)
    return "\t".join(shlex.split(command)) + "\n"


def masked(command: str, lines: list[str], directory: Path) -> list[str]:
    """Return what a command printed, without what differs from run to run."""
    found: list[str] = []
    for line in lines:
        if re.match(r"\s+(at |\.\.\. )", line):
            continue  # where Java was when it failed
        line = line.replace(str(directory), "DIR")
        if command.startswith("brokerStatus"):
            line = line.partition(":")[0].partition("_/")[0]
        elif command.startswith("statsAll"):
            line = re.sub(r"\s-?\d[\d.]*\b", "", line)
        for pattern, masked_as in MASKS:
            line = re.sub(pattern, masked_as, line)
        found.append(line.strip())
    return found


def exported(file: Path) -> Any:
    """Return what was exported, without when that was and when it changed."""
    found = json.loads(file.read_text())
    for name in ("exportTime", "dataVersion"):
        found.pop(name, None)
    return found


def printed(which: str, directory: Path) -> tuple[Sections, dict[str, Any]]:
    """Return what each command printed of a broker, and what was exported."""
    directory.mkdir()
    broker = started(which, directory, SETTINGS)
    there = directory / "there"
    there.mkdir()
    (there / "topics.json").write_text(json.dumps([{**TOPIC, "topicName": "listed"}]))
    (there / "groups.json").write_text(json.dumps([{"groupName": "listed", "retryMaxTimes": 4}]))
    try:
        words = (broker.bootstrap, broker.broker_address)
        program = rocketmq_program(SOURCES, "AdminStage", *words, home=directory / "java")
        typed = "".join(line_of(command, broker, there) for command in COMMANDS)
        said = run_program(program, stdin=typed, directory=there)
    finally:
        broker.stop(kill=True)
    assert "stderr" not in said, said["stderr"]
    found = {
        command: masked(command, said.get(str(number), ["!! it is missing"]), there)
        for number, command in enumerate(COMMANDS)
    }
    names = ("configs.json", "metadata.json", "topics/topic.json", "groups/subscriptionGroup.json")
    return found, {name: exported(there / name) for name in names}


def difference(real: list[str], ours: list[str]) -> str:
    """Return the lines that only one of them has printed, or that stand elsewhere."""
    compared = difflib.ndiff(real, ours)
    return "\n".join(line for line in compared if line.startswith(("- ", "+ ")))


def test_mqadmin(tmp_path: Path) -> None:
    """Every command prints the same, and exports the same."""
    with ThreadPoolExecutor(2) as pool:
        (real, exports), (ours, our_exports) = pool.map(
            lambda which: printed(which, tmp_path / which), ("real", "ours")
        )
    assert [command for command, lines in real.items() if "!! it" in " ".join(lines)] == []
    different = [f"{command}\n{difference(real[command], ours[command])}" for command in COMMANDS]
    assert [one for one in different if not one.endswith("\n")] == []
    assert our_exports == exports
    assert sum(map(len, real.values())) > 500
