import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.AckCallback;
import org.apache.rocketmq.client.consumer.AckResult;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PopCallback;
import org.apache.rocketmq.client.consumer.PopResult;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.impl.ClientRemotingProcessor;
import org.apache.rocketmq.client.impl.mqclient.MQClientAPIExt;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageRequestMode;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.protocol.header.AckMessageRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.ChangeInvisibleTimeRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.ExtraInfoUtil;
import org.apache.rocketmq.remoting.protocol.header.NotificationRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.PopMessageRequestHeader;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;

/** Pop consumption with the official Java client, 5.x: java Popping NAME_SERVER BROKER */
public class Popping {
    static final int TIMEOUT_MS = 20_000;
    /** Longer than a busy machine needs for what must be done before it is over. */
    static final int ORDERED_MS = 8_000;

    final Lab lab;
    final MQClientAPIExt client;
    final String group;
    final String topic;

    Popping(Lab lab, int queues) throws Exception {
        this.lab = lab;
        topic = lab.topic(queues);
        group = lab.group("poppers");
        SubscriptionGroupConfig config = new SubscriptionGroupConfig();
        config.setGroupName(group);
        lab.admin().createAndUpdateSubscriptionGroupConfig(lab.broker, config);
        ClientConfig settings = new ClientConfig();
        settings.setInstanceName(Lab.clientName());
        client = new MQClientAPIExt(settings, new NettyClientConfig(), new ClientRemotingProcessor(null), null);
        client.start();
    }

    public static void main(String[] args) throws Exception {
        Map<String, Scenarios.Scenario> all = new TreeMap<>();
        all.put("again", Popping::again);
        all.put("changed", Popping::changed);
        all.put("in order", Popping::inOrder);
        all.put("pushed", Popping::pushed);
        all.put("waiting", Popping::waiting);
        // All at once: each has its own topic and group, and waits for the clock most of the time.
        ExecutorService pool = Executors.newFixedThreadPool(all.size());
        Map<String, Future<Lab>> running = new TreeMap<>();
        all.forEach((name, scenario) -> running.put(name, pool.submit(() -> {
            Lab lab = new Lab(args[0], args[1], "pop", name.replace(' ', '_'));
            Scenarios.run(scenario, lab);
            return lab;
        })));
        for (Map.Entry<String, Future<Lab>> one : running.entrySet()) {
            System.out.println("== " + one.getKey());
            one.getValue().get().lines.forEach(System.out::println);
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    PopMessageRequestHeader header(int queue, int count, long invisibleMs, long pollMs) {
        PopMessageRequestHeader header = new PopMessageRequestHeader();
        header.setConsumerGroup(group);
        header.setTopic(topic);
        header.setQueueId(queue);
        header.setMaxMsgNums(count);
        header.setInvisibleTime(invisibleMs);
        header.setPollTime(pollMs);
        header.setBornTime(System.currentTimeMillis());
        header.setInitMode(0);
        header.setExpType("TAG");
        header.setExp("*");
        return header;
    }

    CompletableFuture<PopResult> send(PopMessageRequestHeader header) throws Exception {
        CompletableFuture<PopResult> future = new CompletableFuture<>();
        client.popMessageAsync("broker-a", lab.broker, header, TIMEOUT_MS, new PopCallback() {
            @Override
            public void onSuccess(PopResult result) {
                future.complete(result);
            }

            @Override
            public void onException(Throwable error) {
                future.completeExceptionally(error);
            }
        });
        return future;
    }

    List<MessageExt> pop(PopMessageRequestHeader header) throws Exception {
        return tell(send(header).get(TIMEOUT_MS, TimeUnit.MILLISECONDS));
    }

    /** Pop until there is something: what comes again does so when the broker finds time for it. */
    List<MessageExt> popEventually(PopMessageRequestHeader header) throws Exception {
        PopResult[] found = new PopResult[1];
        Lab.eventually("messages that come again", () -> {
            header.setBornTime(System.currentTimeMillis());
            found[0] = send(header).get(TIMEOUT_MS, TimeUnit.MILLISECONDS);
            return found[0].getMsgFoundList() != null && !found[0].getMsgFoundList().isEmpty();
        });
        return tell(found[0]);
    }

    List<MessageExt> tell(PopResult result) {
        lab.say("%s, %d left, invisible for %d ms", result.getPopStatus(), result.getRestNum(), result.getInvisibleTime());
        List<MessageExt> messages = result.getMsgFoundList() == null ? List.of() : result.getMsgFoundList();
        for (MessageExt message : messages) {
            String handle = handleOf(message);
            message.getProperties().put("POP_CK", String.join(" ", stable(handle)));
            lab.say("%s", Lab.shown(message));
            message.getProperties().put("POP_CK", handle);
        }
        return messages;
    }

    /** Wait until so many are in their queues: a real broker acknowledges a message before it is in one. */
    void queued(long count) throws Exception {
        Lab.eventually("messages in their queues", () -> {
            long found = 0;
            for (var offset : lab.admin().examineTopicStats(topic).getOffsetTable().values()) found += offset.getMaxOffset();
            return found >= count;
        });
    }

    static String handleOf(MessageExt message) {
        return message.getProperty("POP_CK");
    }

    /** A handle without what differs from run to run: the time, and the queue of the revive topic. */
    static String[] stable(String handle) {
        String[] words = handle.split(" ");
        words[1] = "*";
        if (!words[3].equals("999")) words[3] = "*";
        return words;
    }

    AckResult ack(String handle) throws Exception {
        String[] words = ExtraInfoUtil.split(handle);
        AckMessageRequestHeader header = new AckMessageRequestHeader();
        header.setTopic(ExtraInfoUtil.getRealTopic(words, topic, group));
        header.setQueueId(ExtraInfoUtil.getQueueId(words));
        header.setOffset(ExtraInfoUtil.getQueueOffset(words));
        header.setConsumerGroup(group);
        header.setExtraInfo(handle);
        CompletableFuture<AckResult> future = new CompletableFuture<>();
        client.ackMessageAsync(lab.broker, TIMEOUT_MS, told(future), header);
        return future.get(TIMEOUT_MS, TimeUnit.MILLISECONDS);
    }

    AckResult change(String handle, long invisibleMs) throws Exception {
        String[] words = ExtraInfoUtil.split(handle);
        ChangeInvisibleTimeRequestHeader header = new ChangeInvisibleTimeRequestHeader();
        header.setTopic(ExtraInfoUtil.getRealTopic(words, topic, group));
        header.setQueueId(ExtraInfoUtil.getQueueId(words));
        header.setOffset(ExtraInfoUtil.getQueueOffset(words));
        header.setConsumerGroup(group);
        header.setExtraInfo(handle);
        header.setInvisibleTime(invisibleMs);
        CompletableFuture<AckResult> future = new CompletableFuture<>();
        client.changeInvisibleTimeAsync("broker-a", lab.broker, header, TIMEOUT_MS, told(future));
        return future.get(TIMEOUT_MS, TimeUnit.MILLISECONDS);
    }

    static AckCallback told(CompletableFuture<AckResult> future) {
        return new AckCallback() {
            @Override
            public void onSuccess(AckResult result) {
                future.complete(result);
            }

            @Override
            public void onException(Throwable error) {
                future.completeExceptionally(error);
            }
        };
    }

    /** Some are acknowledged, alone and in a batch; the others (of one pop: their order is known) come again, then no more. */
    static void again(Lab lab) throws Exception {
        Popping one = new Popping(lab, 1);
        one.pop(one.header(-1, 32, 5000, 0));
        for (int number = 0; number < 6; number++) lab.send(one.topic, 0, number % 2 == 0 ? "even" : "odd", "m" + number);
        one.queued(6);
        List<MessageExt> first = one.pop(one.header(0, 4, 5000, 0));
        List<MessageExt> second = one.pop(one.header(-1, 32, 5000, 0));
        lab.say("ack: %s", one.ack(handleOf(first.get(1))).getStatus());
        CompletableFuture<AckResult> batch = new CompletableFuture<>();
        List<String> handles = List.of(handleOf(first.get(0)), handleOf(second.get(0)), handleOf(second.get(1)));
        one.client.batchAckMessageAsync(lab.broker, TIMEOUT_MS, told(batch), one.topic, one.group, handles);
        lab.say("batch: %s", batch.get(TIMEOUT_MS, TimeUnit.MILLISECONDS).getStatus());
        Thread.sleep(11_000);
        List<MessageExt> again = one.popEventually(one.header(-1, 32, 4000, 0));
        for (MessageExt message : again) lab.say("ack: %s", one.ack(handleOf(message)).getStatus());
        Thread.sleep(9_000);
        one.pop(one.header(-1, 32, 4000, 0));
        var stats = lab.admin().examineConsumeStats(lab.broker, one.group, one.topic, TIMEOUT_MS);
        lab.say("behind by %d in %d queues", stats.computeTotalDiff(), stats.getOffsetTable().size());
        var retried = lab.admin().examineTopicConfig(lab.broker, "%RETRY%" + one.group + "_" + one.topic);
        lab.say("retry topic: %d queues, perm %d", retried.getReadQueueNums(), retried.getPerm());
    }

    /** A message put off comes later than one that is not. */
    static void changed(Lab lab) throws Exception {
        Popping one = new Popping(lab, 1);
        lab.send(one.topic, 0, "T", "soon");
        lab.send(one.topic, 0, "T", "late");
        one.queued(2);
        List<MessageExt> popped = one.pop(one.header(-1, 32, 3000, 0));
        AckResult result = one.change(handleOf(popped.get(1)), 16_000);
        lab.say("change: %s, %s", result.getStatus(), String.join(" ", stable(result.getExtraInfo())));
        one.popEventually(one.header(-1, 32, 60_000, 0));
        one.popEventually(one.header(-1, 32, 60_000, 0));
    }

    /** One batch of a queue at a time. */
    static void inOrder(Lab lab) throws Exception {
        Popping one = new Popping(lab, 1);
        for (int number = 0; number < 4; number++) lab.send(one.topic, 0, "T", "m" + number);
        one.queued(4);
        List<MessageExt> first = one.pop(one.ordered(2, 0));
        one.pop(one.ordered(2, 0));
        lab.say("ack: %s", one.ack(handleOf(first.get(1))).getStatus());
        Thread.sleep(ORDERED_MS + 100);
        List<MessageExt> again = one.pop(one.ordered(2, 0));
        lab.say("old: %s", one.ack(handleOf(first.get(0))).getStatus());
        lab.say("ack: %s", one.ack(handleOf(again.get(0))).getStatus());
        AckResult changed = one.change(handleOf(again.get(1)), 1000);
        lab.say("change: %s", changed.getStatus());
        Thread.sleep(1_100);
        again = one.pop(one.ordered(32, 0));
        CompletableFuture<PopResult> waits = one.send(one.ordered(32, 10_000));
        for (MessageExt message : again) lab.say("ack: %s", one.ack(handleOf(message)).getStatus());
        lab.send(one.topic, 0, "T", "last");
        one.tell(waits.get(TIMEOUT_MS, TimeUnit.MILLISECONDS));
    }

    PopMessageRequestHeader ordered(int count, long pollMs) {
        PopMessageRequestHeader header = header(-1, count, ORDERED_MS, pollMs);
        header.setOrder(true);
        return header;
    }

    /** A pop and a question that wait are answered by a message; others when their time is over. */
    static void waiting(Lab lab) throws Exception {
        Popping one = new Popping(lab, 1);
        one.pop(one.header(0, 1, 60_000, 0));
        CompletableFuture<PopResult> pop = one.send(one.header(0, 1, 60_000, 15_000));
        lab.send(one.topic, 0, "T", "a");
        one.tell(pop.get(TIMEOUT_MS, TimeUnit.MILLISECONDS));
        CompletableFuture<Boolean> notice = one.client.notification(lab.broker, one.question(15_000), TIMEOUT_MS);
        lab.send(one.topic, 0, "T", "b");
        lab.say("notice: %s", notice.get(TIMEOUT_MS, TimeUnit.MILLISECONDS));
        one.pop(one.header(-1, 32, 60_000, 15_000));
        notice = one.client.notification(lab.broker, one.question(1000), TIMEOUT_MS);
        lab.say("notice: %s", notice.get(TIMEOUT_MS, TimeUnit.MILLISECONDS));
        one.pop(one.header(-1, 32, 60_000, 1000));
        one.lab.refused("too many", () -> one.send(one.header(-1, 33, 60_000, 0)).get());
        one.lab.refused("no such queue", () -> one.send(one.header(7, 1, 60_000, 0)).get());
    }

    NotificationRequestHeader question(long pollMs) {
        NotificationRequestHeader header = new NotificationRequestHeader();
        header.setConsumerGroup(group);
        header.setTopic(topic);
        header.setQueueId(-1);
        header.setPollTime(pollMs);
        header.setBornTime(System.currentTimeMillis());
        return header;
    }

    /** A push consumer that pops, since the broker tells it to; what fails comes again. */
    static void pushed(Lab lab) throws Exception {
        String topic = lab.topic(2);
        String group = lab.group("readers");
        lab.admin().createAndUpdateSubscriptionGroupConfig(lab.broker, configOf(group));
        lab.admin().setMessageRequestMode(lab.broker, topic, group, MessageRequestMode.POP, 0, 5000);
        List<String> found = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer consumer = lab.consumer("readers");
        consumer.setClientRebalance(false);
        consumer.subscribe(topic, "good || bad");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            boolean isGood = true;
            for (MessageExt message : messages) {
                found.add(String.format("%s %s times=%d", message.getTopic(), Lab.text(message), message.getReconsumeTimes()));
                isGood &= !message.getTags().equals("bad") || message.getReconsumeTimes() == 1;
            }
            context.setDelayLevelWhenNextConsume(1);
            return isGood ? ConsumeConcurrentlyStatus.CONSUME_SUCCESS : ConsumeConcurrentlyStatus.RECONSUME_LATER;
        });
        for (int number = 0; number < 6; number++) {
            lab.send(topic, number % 2, number == 3 ? "bad" : number == 4 ? "other" : "good", "m" + number);
        }
        consumer.start();
        Lab.eventually("five, and one again", () -> found.size() >= 6);
        Thread.sleep(3000);
        consumer.shutdown();
        Collections.sort(found);
        for (String line : found) lab.say("%s", line);
    }

    static SubscriptionGroupConfig configOf(String group) {
        SubscriptionGroupConfig config = new SubscriptionGroupConfig();
        config.setGroupName(group);
        return config;
    }
}
