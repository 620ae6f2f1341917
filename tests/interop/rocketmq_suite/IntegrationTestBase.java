package org.apache.rocketmq.test.base;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicInteger;
import logstore.OurBroker;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.TopicAttributes;
import org.apache.rocketmq.common.UtilAll;
import org.apache.rocketmq.common.attribute.CQType;
import org.apache.rocketmq.common.attribute.TopicMessageType;
import org.apache.rocketmq.logging.org.slf4j.Logger;
import org.apache.rocketmq.logging.org.slf4j.LoggerFactory;
import org.apache.rocketmq.namesrv.NamesrvController;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.test.util.MQAdminTestUtils;

/**
 * Gives RocketMQ's own tests brokers that are processes of ours.
 *
 * It stands before the class of that name in RocketMQ's jars, which starts real brokers in the JVM of
 * the tests. The name server is that of the first broker.
 */
public class IntegrationTestBase {
    public static Logger logger = LoggerFactory.getLogger(IntegrationTestBase.class);
    public static volatile int commitLogSize = 1024 * 1024 * 100;

    protected static final String SEP = File.separator;
    protected static final int INDEX_NUM = 1000;
    protected static int topicCreateTime = 30;
    private static final AtomicInteger BROKERS = new AtomicInteger();
    private static final String EACH_HOUR =
        "01;02;03;04;05;06;07;08;09;10;11;12;13;14;15;16;17;18;19;20;21;22;23;00";

    static {
        System.setProperty("rocketmq.client.logRoot", System.getProperty("java.io.tmpdir"));
    }

    public static String createBaseDir() {
        return System.getProperty("logstore.directory") + SEP + UUID.randomUUID();
    }

    public static NamesrvController createAndStartNamesrv() {
        NettyServerConfig server = new NettyServerConfig();
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            server.setListenPort(free.getLocalPort());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return new NamesrvController(OurBroker.nameServerSettings("127.0.0.1:" + server.getListenPort()), server);
    }

    public static BrokerController createAndStartBroker(String nameServer) {
        BrokerConfig broker = new BrokerConfig();
        broker.setBrokerName("TestBrokerName_" + BROKERS.incrementAndGet());
        broker.setBrokerIP1("127.0.0.1");
        broker.setNamesrvAddr(nameServer);
        broker.setEnablePropertyFilter(true);
        broker.setEnableCalcFilterBitMap(true);
        broker.setAppendAckAsync(true);
        broker.setAppendCkAsync(true);
        broker.setRecallMessageEnable(true);
        broker.setLoadBalancePollNameServerInterval(500);
        MessageStoreConfig store = new MessageStoreConfig();
        String directory = createBaseDir();
        store.setStorePathRootDir(directory);
        store.setStorePathCommitLog(directory + SEP + "commitlog");
        store.setMappedFileSizeCommitLog(commitLogSize);
        store.setMaxIndexNum(INDEX_NUM);
        store.setMaxHashSlotNum(INDEX_NUM * 4);
        store.setEnableConsumeQueueExt(true);
        store.setDeleteWhen(EACH_HOUR);
        store.setMaxTransferCountOnMessageInMemory(1024);
        store.setMaxTransferCountOnMessageInDisk(1024);
        return createAndStartBroker(store, broker);
    }

    public static BrokerController createAndStartBroker(MessageStoreConfig store, BrokerConfig broker) {
        return OurBroker.started(store, broker);
    }

    public static boolean initTopic(String topic, String nameServer, String cluster, int queues, CQType queueType) {
        return initTopic(topic, nameServer, cluster, queues, queueType, TopicMessageType.NORMAL);
    }

    public static boolean initTopic(
        String topic, String nameServer, String cluster, int queues, CQType queueType, TopicMessageType type) {
        return initTopic(topic, nameServer, cluster, queues, queueType, type, null);
    }

    public static boolean initTopic(
        String topic, String nameServer, String cluster, int queues, CQType queueType, TopicMessageType type,
        Long liteExpiration) {
        Map<String, String> attributes = new HashMap<>();
        if (queueType != CQType.SimpleCQ) {
            attributes.put("+" + TopicAttributes.QUEUE_TYPE_ATTRIBUTE.getName(), queueType.toString());
        }
        if (type != TopicMessageType.NORMAL) {
            attributes.put("+" + TopicAttributes.TOPIC_MESSAGE_TYPE_ATTRIBUTE.getName(), type.toString());
        }
        if (liteExpiration != null) {
            attributes.put("+" + TopicAttributes.LITE_EXPIRATION_ATTRIBUTE.getName(), liteExpiration.toString());
        }
        return MQAdminTestUtils.createTopic(nameServer, cluster, topic, queues, attributes, topicCreateTime);
    }

    public static boolean initTopic(String topic, String nameServer, String cluster, CQType queueType) {
        return initTopic(topic, nameServer, cluster, BaseConf.QUEUE_NUMBERS, queueType);
    }

    public static boolean initTopic(String topic, String nameServer, String cluster, TopicMessageType type) {
        return initTopic(topic, nameServer, cluster, BaseConf.QUEUE_NUMBERS, CQType.SimpleCQ, type);
    }

    public static void deleteFile(File file) {
        UtilAll.deleteFile(file);
    }

    public static void initMQAdmin(String nameServer) {
        try {
            MQAdminTestUtils.startAdmin(nameServer);
        } catch (MQClientException error) {
            throw new IllegalStateException(error);
        }
    }
}
