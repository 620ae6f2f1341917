import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.zip.CRC32;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** What a scenario works with: names of its own, clients, and the lines that it says. */
final class Lab {
    /** A lock of an orderly queue goes from one consumer to the next in two rounds of 20 s. */
    static final long PATIENCE_MS = 60_000;
    static final int SHORT_BODY = 80;
    /** Properties whose values differ from run to run: of these the name alone is shown. */
    static final Set<String> VOLATILE = Set.of(
        "UNIQ_KEY", "ORIGIN_MESSAGE_ID", "CONSUME_START_TIME", "DLQ_ORIGIN_MESSAGE_ID",
        "__transactionId__", "TRAN_MSG", "TRANSACTION_CHECK_TIMES", "BORN_TIMESTAMP", "CLUSTER",
        "REAL_QID", "1ST_POP_TIME", "MSG_REGION");

    private static DefaultMQAdminExt admin;
    private static int clients = 0;

    final String nameServer;
    final String broker;
    final String prefix;
    final String name;
    final List<String> lines = Collections.synchronizedList(new ArrayList<>());
    private DefaultMQPullConsumer puller;
    private DefaultMQProducer producer;

    Lab(String nameServer, String broker, String prefix, String name) {
        this.nameServer = nameServer;
        this.broker = broker;
        this.prefix = prefix;
        this.name = name;
    }

    void say(String format, Object... values) {
        lines.add(String.format(format, values));
    }

    /** Say what went wrong, without the addresses and times in the client's own words. */
    void failed(Throwable error) {
        if (error instanceof MQBrokerException) {
            say("!! broker code %d", ((MQBrokerException) error).getResponseCode());
        } else if (error instanceof MQClientException) {
            say("!! client code %d", ((MQClientException) error).getResponseCode());
        } else {
            say("!! %s", error);
        }
        error.printStackTrace();
    }

    /** Do what must fail, and say how. */
    void refused(String what, Callable<?> action) {
        try {
            Object found = action.call();
            say("%s: done, %s", what, found);
        } catch (MQBrokerException error) {
            say("%s: broker code %d", what, error.getResponseCode());
        } catch (MQClientException error) {
            say("%s: client code %d", what, error.getResponseCode());
        } catch (Exception error) {
            say("%s: %s", what, error.getClass().getSimpleName());
        }
    }

    static void eventually(String what, Callable<Boolean> question) throws Exception {
        long end = System.currentTimeMillis() + PATIENCE_MS;
        while (!question.call()) {
            if (System.currentTimeMillis() > end) throw new IllegalStateException(what + ": not in time");
            Thread.sleep(10);
        }
    }

    static synchronized String clientName() {
        return "scenario" + clients++;
    }

    DefaultMQAdminExt admin() throws Exception {
        synchronized (Lab.class) {
            if (admin == null) {
                DefaultMQAdminExt fresh = new DefaultMQAdminExt(20_000);
                fresh.setNamesrvAddr(nameServer);
                fresh.setInstanceName(clientName());
                fresh.start();
                admin = fresh;
            }
            return admin;
        }
    }

    String group(String suffix) {
        return prefix + "_" + name + "_" + suffix;
    }

    String topic(int queues) throws Exception {
        return topic("t", queues);
    }

    /** Create a topic and return once the name server shows it. */
    String topic(String suffix, int queues) throws Exception {
        String topic = prefix + "_" + name + "_" + suffix;
        TopicConfig config = new TopicConfig(topic, queues, queues, 6);
        admin().createAndUpdateTopicConfig(broker, config);
        eventually("a route for " + topic, () -> hasRoute(topic));
        return topic;
    }

    boolean hasRoute(String topic) throws Exception {
        try {
            return !admin().examineTopicRouteInfo(topic).getQueueDatas().isEmpty();
        } catch (MQClientException none) {
            return false;
        }
    }

    DefaultMQProducer prepared(DefaultMQProducer fresh) throws Exception {
        fresh.setNamesrvAddr(nameServer);
        fresh.setInstanceName(clientName());
        fresh.setSendMsgTimeout(20_000);
        fresh.setMqClientApiTimeout(20_000);
        fresh.setRetryTimesWhenSendFailed(0);
        fresh.start();
        return fresh;
    }

    DefaultMQProducer producer() throws Exception {
        if (producer == null) producer = prepared(new DefaultMQProducer(group("producers")));
        return producer;
    }

    DefaultMQPullConsumer puller() throws Exception {
        if (puller == null) {
            puller = new DefaultMQPullConsumer(group("pullers"));
            puller.setNamesrvAddr(nameServer);
            puller.setInstanceName(clientName());
            puller.setMqClientApiTimeout(20_000);
            puller.start();
        }
        return puller;
    }

    DefaultMQPushConsumer consumer(String suffix) throws Exception {
        DefaultMQPushConsumer fresh = new DefaultMQPushConsumer(group(suffix));
        fresh.setNamesrvAddr(nameServer);
        fresh.setInstanceName(clientName());
        fresh.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        fresh.setMqClientApiTimeout(20_000);
        // Else half a minute goes by until it finds its retry topic, and until a heart beat that
        // two threads of the 5.x client got in each other's way with is sent again.
        fresh.setPollNameServerInterval(1_000);
        fresh.setHeartbeatBrokerInterval(1_000);
        fresh.setConsumeThreadMin(2);
        fresh.setConsumeThreadMax(2);
        return fresh;
    }

    /** Have a consumer tell the broker how far it is, until the broker shows it at the end. */
    void committed(DefaultMQPushConsumer consumer, String topic) throws Exception {
        eventually("offsets of " + consumer.getConsumerGroup(), () -> {
            consumer.getDefaultMQPushConsumerImpl().persistConsumerOffset();
            return admin().examineConsumeStats(consumer.getConsumerGroup(), topic).computeTotalDiff() == 0;
        });
    }

    static MessageQueue queue(String topic, int queueId) {
        return new MessageQueue(topic, "broker-a", queueId);
    }

    Message message(String topic, String tags, String body) {
        return new Message(topic, tags, body.getBytes(StandardCharsets.UTF_8));
    }

    void send(String topic, int queueId, String tags, String body) throws Exception {
        producer().send(message(topic, tags, body), queue(topic, queueId));
    }

    /** Pull the whole topic, queue by queue, once it holds so many messages. */
    List<MessageExt> drain(String topic, int count) throws Exception {
        List<MessageExt> found = new ArrayList<>();
        eventually(count + " messages in " + topic, () -> {
            found.clear();
            List<MessageQueue> queues = new ArrayList<>(puller().fetchSubscribeMessageQueues(topic));
            Collections.sort(queues);
            for (MessageQueue queue : queues) drainQueue(queue, found);
            return found.size() >= count;
        });
        return found;
    }

    private void drainQueue(MessageQueue queue, List<MessageExt> found) throws Exception {
        long at = puller().minOffset(queue);
        while (at < puller().maxOffset(queue)) {
            PullResult result = puller().pull(queue, "*", at, 32);
            if (result.getPullStatus() == PullStatus.FOUND) found.addAll(result.getMsgFoundList());
            at = result.getNextBeginOffset();
        }
    }

    static String text(MessageExt message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }

    /** Everything of a message that a second run has again. */
    static String shown(MessageExt message) {
        Map<String, String> properties = new TreeMap<>(message.getProperties());
        properties.remove("MIN_OFFSET");
        properties.remove("MAX_OFFSET");
        for (String key : VOLATILE) properties.computeIfPresent(key, (name, value) -> "*");
        byte[] body = message.getBody();
        CRC32 crc = new CRC32();
        crc.update(body);
        String shown = body.length <= SHORT_BODY ? text(message) : body.length + " bytes";
        return String.format(
            "%s/%d@%d %s crc=%x stored=%x flag=%d sysFlag=%x times=%d %s",
            message.getTopic(), message.getQueueId(), message.getQueueOffset(), shown,
            crc.getValue() & 0x7fffffff, message.getBodyCRC(), message.getFlag(),
            message.getSysFlag(), message.getReconsumeTimes(), properties);
    }
}
