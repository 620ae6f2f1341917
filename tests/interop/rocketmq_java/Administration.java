import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListSet;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** What DefaultMQAdminExt asks and changes. */
final class Administration {
    private Administration() {}

    static void topics(Lab lab) throws Exception {
        DefaultMQAdminExt admin = lab.admin();
        String topic = lab.topic(3);
        lab.say("config: %s", described(admin.examineTopicConfig(lab.broker, topic)));
        TopicConfig wider = new TopicConfig(topic, 5, 4, 6);
        wider.setOrder(true);
        admin.createAndUpdateTopicConfig(lab.broker, wider);
        Lab.eventually("the route", () ->
            admin.examineTopicRouteInfo(topic).getQueueDatas().get(0).getReadQueueNums() == 5);
        var route = admin.examineTopicRouteInfo(topic);
        var data = route.getQueueDatas().get(0);
        lab.say("route: %s %d %d perm %d", data.getBrokerName(), data.getReadQueueNums(), data.getWriteQueueNums(), data.getPerm());
        var broker = route.getBrokerDatas().get(0);
        lab.say("at: %s %s %s", broker.getCluster(), broker.getBrokerName(), broker.getBrokerAddrs().keySet());
        for (int n = 0; n < 7; n++) lab.send(topic, n % 4, "", "x" + n);
        lab.drain(topic, 7);
        for (var one : new TreeMap<>(admin.examineTopicStats(topic).getOffsetTable()).entrySet()) {
            var offsets = one.getValue();
            lab.say("stats: %d %d-%d %s", one.getKey().getQueueId(), offsets.getMinOffset(),
                offsets.getMaxOffset(), offsets.getLastUpdateTimestamp() > 0);
        }
        lab.say("listed: %s", admin.fetchAllTopicList().getTopicList().contains(topic));
        Set<String> own = new TreeSet<>(List.of("BenchmarkTest", "DefaultCluster", "DefaultCluster_REPLY_TOPIC",
            "OFFSET_MOVED_EVENT", "RMQ_SYS_TRANS_HALF_TOPIC", "SCHEDULE_TOPIC_XXXX", "SELF_TEST_TOPIC", "TBW102", "broker-a"));
        own.retainAll(admin.fetchAllTopicList().getTopicList());
        lab.say("broker's own: %s", own);
        lab.say("clusters: %s", admin.getTopicClusterList(topic));
        admin.deleteTopicInBroker(Set.of(lab.broker), topic);
        Versions.deleteRoute(admin, lab.nameServer, topic);
        Lab.eventually("its end", () -> !lab.hasRoute(topic));
        lab.say("deleted: %s", !admin.fetchAllTopicList().getTopicList().contains(topic));
        lab.refused("config of none", () -> admin.examineTopicConfig(lab.broker, "never-made"));
        lab.refused("route of none", () -> admin.examineTopicRouteInfo("never-made"));
    }

    static String described(TopicConfig config) {
        return String.format("%d %d perm %d order %s filter %s flag %d", config.getReadQueueNums(),
            config.getWriteQueueNums(), config.getPerm(), config.isOrder(), config.getTopicFilterType(),
            config.getTopicSysFlag());
    }

    static void groups(Lab lab) throws Exception {
        DefaultMQAdminExt admin = lab.admin();
        String group = lab.group("made");
        Versions.createGroup(admin, lab.broker, group, 7);
        var config = admin.examineSubscriptionGroupConfig(lab.broker, group);
        lab.say("%d tries, %d queues, enabled %s, broadcast %s, from min %s", config.getRetryMaxTimes(),
            config.getRetryQueueNums(), config.isConsumeEnable(), config.isConsumeBroadcastEnable(),
            config.isConsumeFromMinEnable());
        lab.say("listed: %s", admin.getAllSubscriptionGroup(lab.broker, 10_000).getSubscriptionGroupTable().containsKey(group));
        admin.deleteSubscriptionGroup(lab.broker, group, true);
        // A broker of 5.x makes it anew, with 16 tries, as soon as somebody asks for it.
        var left = admin.getAllSubscriptionGroup(lab.broker, 10_000).getSubscriptionGroupTable().get(group);
        lab.say("deleted: %s", left == null || left.getRetryMaxTimes() == 16);
    }

    static void connections(Lab lab) throws Exception {
        DefaultMQAdminExt admin = lab.admin();
        String topic = lab.topic(2);
        String group = lab.group("readers");
        Set<String> bodies = new ConcurrentSkipListSet<>();
        DefaultMQPushConsumer consumer = lab.consumer("readers");
        consumer.subscribe(topic, "A || B");
        Pushing.listening(consumer, bodies);
        for (int n = 0; n < 6; n++) lab.send(topic, n % 2, "A", "x" + n);
        Lab.eventually("all six", () -> bodies.size() == 6);
        Versions.heartBeat(lab.producer());
        var connection = admin.examineConsumerConnectionInfo(group);
        lab.say("consumers: %d %s %s %s", connection.getConnectionSet().size(), connection.getConsumeType(),
            connection.getMessageModel(), connection.getConsumeFromWhere());
        connection.getConnectionSet().forEach(one -> lab.say("language %s", one.getLanguage()));
        new TreeMap<>(connection.getSubscriptionTable()).forEach((name, data) ->
            lab.say("subscribed: %s %s %s %s", name, data.getSubString(), new TreeSet<>(data.getTagsSet()), data.getExpressionType()));
        var producers = admin.examineProducerConnectionInfo(lab.group("producers"), topic);
        lab.say("producers: %d", producers.getConnectionSet().size());
        lab.say("who consumes: %s", admin.queryTopicConsumeByWho(topic).getGroupList());
        lab.committed(consumer, topic);
        consumer.shutdown();
        lab.refused("consumers of none", () -> admin.examineConsumerConnectionInfo("never_there"));
        lab.refused("producers of none", () -> admin.examineProducerConnectionInfo("never_there", topic));
        for (var one : new TreeMap<>(admin.examineConsumeStats(group).getOffsetTable()).entrySet()) {
            lab.say("%s/%d: %d of %d", one.getKey().getTopic(), one.getKey().getQueueId(),
                one.getValue().getConsumerOffset(), one.getValue().getBrokerOffset());
        }
    }

    static void reset(Lab lab) throws Exception {
        DefaultMQAdminExt admin = lab.admin();
        String topic = lab.topic(1);
        MessageQueue queue = Lab.queue(topic, 0);
        Set<String> bodies = new ConcurrentSkipListSet<>();
        for (int n = 0; n < 5; n++) {
            lab.send(topic, 0, "", "x" + n);
            Thread.sleep(40);
        }
        DefaultMQPushConsumer consumer = lab.consumer("readers");
        consumer.subscribe(topic, "*");
        Pushing.listening(consumer, bodies);
        Lab.eventually("all five", () -> bodies.size() == 5);
        lab.committed(consumer, topic);
        consumer.shutdown();
        List<MessageExt> found = lab.drain(topic, 5);
        long time = found.get(2).getStoreTimestamp();
        var reset = admin.resetOffsetByTimestampOld(lab.group("readers"), topic, time, true);
        reset.forEach(one -> lab.say("from %d to %d by time", one.getConsumerOffset(), one.getRollbackOffset()));
        Set<String> again = new ConcurrentSkipListSet<>();
        DefaultMQPushConsumer next = lab.consumer("readers");
        next.subscribe(topic, "*");
        Pushing.listening(next, again);
        Lab.eventually("the last three", () -> again.size() >= 3);
        next.shutdown();
        lab.say("again: %s", again);
        lab.say("max %d min %d", admin.maxOffset(queue), admin.minOffset(queue));
    }

    static void config(Lab lab) throws Exception {
        DefaultMQAdminExt admin = lab.admin();
        var cluster = admin.examineBrokerClusterInfo();
        lab.say("clusters: %s, brokers: %s", cluster.getClusterAddrTable(), cluster.getBrokerAddrTable().keySet());
        var properties = admin.getBrokerConfig(lab.broker);
        for (String key : List.of("brokerName", "brokerClusterName", "brokerId", "brokerRole", "flushDiskType",
            "maxMessageSize", "messageDelayLevel", "mappedFileSizeConsumeQueue", "deleteWhen", "fileReservedTime",
            "autoCreateTopicEnable", "autoCreateSubscriptionGroup", "defaultTopicQueueNums", "enablePropertyFilter")) {
            lab.say("%s=%s", key, properties.getProperty(key));
        }
        var change = new java.util.Properties();
        change.setProperty("waitTimeMillsInSendQueue", "4321");
        admin.updateBrokerConfig(lab.broker, change);
        lab.say("changed: %s", admin.getBrokerConfig(lab.broker).getProperty("waitTimeMillsInSendQueue"));
        Map<String, String> stats = admin.fetchBrokerRuntimeStats(lab.broker).getTable();
        for (String key : List.of("brokerVersionDesc", "bootTimestamp", "msgPutTotalTodayNow", "msgGetTotalTodayNow",
            "putTps", "getTotalTps", "runtime", "commitLogMinOffset", "commitLogMaxOffset", "commitLogDiskRatio",
            "consumeQueueDiskRatio", "dispatchBehindBytes", "pageCacheLockTimeMills", "earliestMessageTimeStamp",
            "putMessageDistributeTime", "remainHowManyDataToFlush", "startAcceptSendRequestTimeStamp",
            "sendThreadPoolQueueSize", "pullThreadPoolQueueCapacity", "EndTransactionQueueSize")) {
            lab.say("has %s: %s", key, stats.containsKey(key));
        }
        lab.say("minimum offset: %s", stats.get("commitLogMinOffset"));
    }
}
