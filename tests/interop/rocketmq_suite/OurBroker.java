package logstore;

import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyBoolean;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.anyString;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.withSettings;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.offset.ConsumerOffsetManager;
import org.apache.rocketmq.broker.out.BrokerOuterAPI;
import org.apache.rocketmq.broker.subscription.SubscriptionGroupManager;
import org.apache.rocketmq.broker.topic.TopicConfigManager;
import org.apache.rocketmq.broker.topic.TopicQueueMappingCleanService;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.common.namesrv.NamesrvConfig;
import org.apache.rocketmq.common.utils.QueueTypeUtils;
import org.apache.rocketmq.remoting.protocol.admin.OffsetWrapper;
import org.apache.rocketmq.remoting.protocol.admin.TopicOffset;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.exception.ConsumeQueueException;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;
import org.mockito.invocation.InvocationOnMock;
import org.mockito.stubbing.Answer;

/**
 * A broker of ours as the object that RocketMQ's own tests know.
 *
 * What they ask it or tell it goes there as a request, and what is not foreseen here fails, naming the
 * method.
 */
public final class OurBroker {
    private static final long WAIT_MS_MAX = 5000;
    /** What RocketMQ's tests of its proxy say. */
    private static final Map<String, String> PROXY_SETTINGS =
        Map.of("minInvisibleTimeMillsForRecv", "3", "grpcClientConsumerMinLongPollingTimeoutMillis", "0");
    /** The broker beside whose own is the name server. */
    private static String first;
    private static int proxyPort;
    private static DefaultMQAdminExt admin;

    private final OurProcess process;
    private final String name;
    private final String address;

    private OurBroker(OurProcess process, String name) {
        this.process = process;
        this.name = name;
        this.address = process.address("broker");
    }

    /** Start a broker with what these settings say beyond the defaults. */
    public static synchronized BrokerController started(MessageStoreConfig store, BrokerConfig broker) {
        String nameServer = broker.getNamesrvAddr();
        first = first == null ? broker.getBrokerName() : first;
        List<String> arguments = new ArrayList<>(List.of("--layout", "rocketmq"));
        arguments.addAll(List.of("--data", store.getStorePathRootDir()));
        boolean isFirst = broker.getBrokerName().equals(first);
        String port = nameServer.substring(nameServer.lastIndexOf(':') + 1);
        arguments.addAll(isFirst ? List.of("--port", port, "--proxy-port", "0") : List.of("-n", nameServer));
        Map<String, String> settings = differing(broker, new BrokerConfig());
        settings.putAll(differing(store, new MessageStoreConfig()));
        settings.keySet().removeIf(key -> key.startsWith("storePath") || List.of("namesrvAddr", "listenPort").contains(key));
        if (isFirst) {
            settings.putAll(PROXY_SETTINGS);
        }
        OurProcess process = new OurProcess("--broker-port", "broker", arguments, settings);
        process.start();
        if (isFirst) {
            String proxy = process.address("proxy");
            proxyPort = Integer.parseInt(proxy.substring(proxy.lastIndexOf(':') + 1));
        }
        Runtime.getRuntime().addShutdownHook(new Thread(process::stop));
        return new OurBroker(process, broker.getBrokerName()).controller(store, broker);
    }

    /** Where the first broker has its proxy. */
    public static synchronized int proxyPort() {
        return proxyPort;
    }

    private static Map<String, String> differing(Object config, Object defaults) {
        Properties usual = MixAll.object2Properties(defaults);
        Map<String, String> found = new TreeMap<>();
        MixAll.object2Properties(config).forEach((key, value) -> {
            if (!value.equals(usual.get(key))) {
                found.put((String) key, (String) value);
            }
        });
        return found;
    }

    private BrokerController controller(MessageStoreConfig store, BrokerConfig broker) {
        Change change = (key, value) -> {
            if (process.isRunning()) {
                admin(broker.getNamesrvAddr()).updateBrokerConfig(address, of(key, value));
            }
        };
        BrokerConfig told = told(BrokerConfig.class, broker, change);
        MessageStoreConfig toldStore = told(MessageStoreConfig.class, store, change);
        DefaultMessageStore messages = messages(broker.getNamesrvAddr());
        TopicConfigManager topics = topics(broker.getNamesrvAddr());
        SubscriptionGroupManager groups = groups(broker.getNamesrvAddr());
        ConsumerOffsetManager offsets = consumerOffsets(broker.getNamesrvAddr());
        BrokerOuterAPI outer = mock(BrokerOuterAPI.class);
        TopicQueueMappingCleanService cleaning = mock(TopicQueueMappingCleanService.class);
        BrokerController controller = strict(BrokerController.class);
        doAnswer(call -> told).when(controller).getBrokerConfig();
        doAnswer(call -> toldStore).when(controller).getMessageStoreConfig();
        doAnswer(call -> address).when(controller).getBrokerAddr();
        doAnswer(call -> messages).when(controller).getMessageStore();
        doAnswer(call -> topics).when(controller).getTopicConfigManager();
        doAnswer(call -> offsets).when(controller).getConsumerOffsetManager();
        doAnswer(call -> groups).when(controller).getSubscriptionGroupManager();
        doAnswer(call -> outer).when(controller).getBrokerOuterAPI();
        doAnswer(call -> cleaning).when(controller).getTopicQueueMappingCleanService();
        // Nothing to do: a name server hears of whatever has changed at once.
        doAnswer(call -> null).when(controller).registerBrokerAll(anyBoolean(), anyBoolean(), anyBoolean());
        doAnswer(call -> {
            process.stop();
            return null;
        }).when(controller).shutdown();
        return controller;
    }

    private DefaultMessageStore messages(String nameServer) {
        DefaultMessageStore messages = strict(DefaultMessageStore.class);
        doAnswer(call -> Long.parseLong(
            admin(nameServer).fetchBrokerRuntimeStats(address).getTable().get("dispatchBehindBytes")
        )).when(messages).dispatchBehindBytes();
        doAnswer(call -> {
            TopicOffset found = offsets(nameServer, call);
            TopicConfig topic = admin(nameServer).getAllTopicConfig(address, WAIT_MS_MAX)
                .getTopicConfigTable().get(call.<String>getArgument(0));
            boolean isOfBatches = QueueTypeUtils.isBatchCq(Optional.ofNullable(topic));
            return isOfBatches && found.getMaxOffset() == 0 ? -1L : found.getMinOffset();
        }).when(messages).getMinOffsetInQueue(anyString(), anyInt());
        try {
            doAnswer(call -> offsets(nameServer, call).getMaxOffset())
                .when(messages).getMaxOffsetInQueue(anyString(), anyInt());
        } catch (ConsumeQueueException error) {
            throw new IllegalStateException(error);
        }
        doAnswer(call -> admin(nameServer).cleanUnusedTopicByAddr(address) ? 1 : 0)
            .when(messages).cleanUnusedTopic(any());
        return messages;
    }

    private TopicOffset offsets(String nameServer, InvocationOnMock call) throws Exception {
        MessageQueue queue = new MessageQueue(call.getArgument(0), name, call.getArgument(1));
        return admin(nameServer).examineTopicStats(address, queue.getTopic()).getOffsetTable().get(queue);
    }

    private TopicConfigManager topics(String nameServer) {
        TopicConfigManager topics = strict(TopicConfigManager.class);
        doAnswer(call -> admin(nameServer).getAllTopicConfig(address, WAIT_MS_MAX).getTopicConfigTable())
            .when(topics).getTopicConfigTable();
        doAnswer(call -> {
            admin(nameServer).createAndUpdateTopicConfig(address, call.getArgument(0));
            return null;
        }).when(topics).updateTopicConfig(any(TopicConfig.class));
        return topics;
    }

    private ConsumerOffsetManager consumerOffsets(String nameServer) {
        ConsumerOffsetManager offsets = strict(ConsumerOffsetManager.class);
        doAnswer(call -> consumed(nameServer, call).getConsumerOffset())
            .when(offsets).queryOffset(anyString(), anyString(), anyInt());
        doAnswer(call -> consumed(nameServer, call).getPullOffset())
            .when(offsets).queryPullOffset(anyString(), anyString(), anyInt());
        return offsets;
    }

    private OffsetWrapper consumed(String nameServer, InvocationOnMock call) throws Exception {
        MessageQueue queue = new MessageQueue(call.getArgument(1), name, call.getArgument(2));
        return admin(nameServer).examineConsumeStats(address, call.getArgument(0), queue.getTopic(), WAIT_MS_MAX)
            .getOffsetTable().get(queue);
    }

    private SubscriptionGroupManager groups(String nameServer) {
        SubscriptionGroupManager groups = strict(SubscriptionGroupManager.class);
        Answer<Object> update = call -> {
            admin(nameServer).createAndUpdateSubscriptionGroupConfig(address, call.getArgument(0));
            return null;
        };
        doAnswer(update).when(groups).updateSubscriptionGroupConfig(any());
        doAnswer(call -> {
            String group = call.getArgument(0);
            Map<String, SubscriptionGroupConfig> known =
                admin(nameServer).getAllSubscriptionGroup(address, WAIT_MS_MAX).getSubscriptionGroupTable();
            SubscriptionGroupConfig fresh = new SubscriptionGroupConfig();
            fresh.setGroupName(group);
            return known.getOrDefault(group, fresh);
        }).when(groups).findSubscriptionGroupConfig(anyString());
        return groups;
    }

    private static synchronized DefaultMQAdminExt admin(String nameServer) throws Exception {
        if (admin == null) {
            DefaultMQAdminExt fresh = new DefaultMQAdminExt(WAIT_MS_MAX);
            fresh.setNamesrvAddr(nameServer);
            fresh.setInstanceName("logstore");
            fresh.start();
            admin = fresh;
        }
        return admin;
    }

    /** Settings of the name server, which is told of whatever is set. */
    public static NamesrvConfig nameServerSettings(String nameServer) {
        return told(NamesrvConfig.class, new NamesrvConfig(), (key, value) -> {
            admin(nameServer).updateNameServerConfig(of(key, value), List.of(nameServer));
        });
    }

    private static Properties of(String key, String value) {
        Properties change = new Properties();
        change.put(key, value);
        return change;
    }

    /** These settings, which tell `change` of whatever is set. */
    private static <T> T told(Class<T> kind, T settings, Change change) {
        return mock(kind, withSettings().stubOnly().spiedInstance(settings).defaultAnswer(call -> {
            Object answer = call.callRealMethod();
            String method = call.getMethod().getName();
            if (method.startsWith("set")) {
                String key = Character.toLowerCase(method.charAt(3)) + method.substring(4);
                change.tell(key, String.valueOf((Object) call.getArgument(0)));
            }
            return answer;
        }));
    }

    private static <T> T strict(Class<T> kind) {
        return mock(kind, withSettings().stubOnly().defaultAnswer(call -> {
            if (call.getMethod().getName().equals("toString")) {
                return kind.getSimpleName() + " of ours";
            }
            throw new UnsupportedOperationException("a broker of ours has no " + call.getMethod());
        }));
    }

    /** What is done with a setting that has changed. */
    private interface Change {
        void tell(String key, String value) throws Exception;
    }
}
