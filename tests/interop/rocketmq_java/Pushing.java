import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Push consumers: in groups, with filters, in order, to everybody, coming and going. */
final class Pushing {
    private Pushing() {}

    /** Start a consumer that notes the bodies it is given. */
    static DefaultMQPushConsumer listening(DefaultMQPushConsumer consumer, Set<String> bodies) throws Exception {
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                if (!bodies.add(Lab.text(message))) bodies.add(Lab.text(message) + " again");
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        return consumer;
    }

    static void push(Lab lab) throws Exception {
        String topic = lab.topic(2);
        for (int n = 0; n < 20; n++) lab.send(topic, n % 2, "", String.format("early %02d", n));
        Set<String> bodies = new ConcurrentSkipListSet<>();
        DefaultMQPushConsumer consumer = lab.consumer("readers");
        consumer.subscribe(topic, "*");
        listening(consumer, bodies);
        Lab.eventually("the early ones", () -> bodies.size() == 20);
        for (int n = 0; n < 20; n++) lab.send(topic, n % 2, "", String.format("late %02d", n));
        Lab.eventually("the late ones", () -> bodies.size() == 40);
        lab.committed(consumer, topic);
        consumer.shutdown();
        lab.say("%s", bodies);
        for (int n = 0; n < 4; n++) lab.send(topic, n % 2, "", "meanwhile " + n);
        Set<String> rest = new ConcurrentSkipListSet<>();
        DefaultMQPushConsumer next = lab.consumer("readers");
        next.subscribe(topic, "*");
        listening(next, rest);
        Lab.eventually("those sent meanwhile", () -> rest.size() >= 4);
        lab.committed(next, topic);
        next.shutdown();
        lab.say("%s", rest);
        var stats = lab.admin().examineConsumeStats(lab.group("readers"), topic);
        stats.getOffsetTable().forEach((queue, offsets) -> {
            if (queue.getTopic().equals(topic)) {
                lab.say("%d consumed of %d", offsets.getConsumerOffset(), offsets.getBrokerOffset());
            }
        });
    }

    static void tags(Lab lab) throws Exception {
        String topic = lab.topic(1);
        // Aa and BB have the same hash: the broker lets both through, the client only one.
        String[] tags = {"Aa", "BB", "C", "", "标签"};
        for (int n = 0; n < 15; n++) lab.send(topic, 0, tags[n % 5], tags[n % 5] + " " + n);
        lab.send(topic, 0, "C", "the end");
        int number = 0;
        for (String expression : List.of("Aa || C", "标签 || C", "C", "BB||C")) {
            Set<String> bodies = new ConcurrentSkipListSet<>();
            DefaultMQPushConsumer consumer = lab.consumer("readers" + number++);
            consumer.subscribe(topic, expression);
            listening(consumer, bodies);
            Lab.eventually("the end", () -> bodies.contains("the end"));
            consumer.shutdown();
            lab.say("%s: %s", expression, bodies);
        }
    }

    static void sql(Lab lab) throws Exception {
        String topic = lab.topic(1);
        for (int n = 0; n < 12; n++) {
            Message message = lab.message(topic, n % 3 == 0 ? "T" : "U", String.format("n=%02d", n));
            message.putUserProperty("n", "" + n);
            message.putUserProperty("half", "" + n / 2.0);
            if (n % 2 == 0) message.putUserProperty("color", n % 4 == 0 ? "blue" : "green");
            lab.producer().send(message, Lab.queue(topic, 0));
        }
        Message end = lab.message(topic, "end", "the end");
        end.putUserProperty("last", "yes");
        lab.producer().send(end, Lab.queue(topic, 0));
        String[] expressions = {
            "n > 5 AND n <= 9", "color = 'blue'", "color IN ('green', 'red') OR n = 1", "color IS NULL",
            "half BETWEEN 1.5 AND 3", "NOT (n < 10) AND TAGS = 'U'", "color <> 'blue'", "n >= 3 AND color IS NOT NULL",
        };
        int number = 0;
        for (String expression : expressions) {
            Set<String> bodies = new ConcurrentSkipListSet<>();
            DefaultMQPushConsumer consumer = lab.consumer("readers" + number++);
            consumer.subscribe(topic, MessageSelector.bySql("(last IS NOT NULL) OR (" + expression + ")"));
            listening(consumer, bodies);
            Lab.eventually("the end", () -> bodies.contains("the end"));
            consumer.shutdown();
            lab.say("%s: %s", expression, bodies);
        }
        lab.refused("bad expression", () -> {
            DefaultMQPushConsumer consumer = lab.consumer("bad");
            consumer.subscribe(topic, MessageSelector.bySql("n >"));
            listening(consumer, new TreeSet<>());
            return "started";
        });
    }

    static void orderly(Lab lab) throws Exception {
        String topic = lab.topic(3);
        for (int n = 0; n < 30; n++) lab.send(topic, n % 3, "", String.format("%02d", n));
        Map<Integer, List<String>> found = new ConcurrentHashMap<>();
        AtomicBoolean isSuspended = new AtomicBoolean();
        List<DefaultMQPushConsumer> consumers = new ArrayList<>();
        for (int n = 0; n < 2; n++) {
            DefaultMQPushConsumer consumer = lab.consumer("readers");
            consumer.subscribe(topic, "*");
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                for (MessageExt message : messages) {
                    if (Lab.text(message).equals("06") && isSuspended.compareAndSet(false, true)) {
                        return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
                    }
                    found.computeIfAbsent(message.getQueueId(), key -> Collections.synchronizedList(new ArrayList<>()))
                        .add(Lab.text(message));
                }
                return ConsumeOrderlyStatus.SUCCESS;
            });
            consumer.start();
            consumers.add(consumer);
        }
        Lab.eventually("all", () -> found.values().stream().mapToInt(List::size).sum() >= 30);
        for (int n = 30; n < 42; n++) lab.send(topic, n % 3, "", String.format("%02d", n));
        Lab.eventually("all later ones", () -> found.values().stream().mapToInt(List::size).sum() >= 42);
        for (DefaultMQPushConsumer consumer : consumers) consumer.shutdown();
        // A queue that changes hands may be read twice from its committed offset on, but in order.
        new TreeMap<>(found).forEach((queueId, bodies) -> {
            lab.say("%d: %s", queueId, new ArrayList<>(new java.util.LinkedHashSet<>(bodies)));
        });
    }

    static void broadcast(Lab lab) throws Exception {
        String topic = lab.topic(2);
        List<Set<String>> seen = new ArrayList<>();
        List<DefaultMQPushConsumer> consumers = new ArrayList<>();
        for (int n = 0; n < 2; n++) {
            DefaultMQPushConsumer consumer = lab.consumer("readers");
            Versions.broadcast(consumer);
            consumer.subscribe(topic, "*");
            Set<String> bodies = new ConcurrentSkipListSet<>();
            seen.add(bodies);
            consumers.add(listening(consumer, bodies));
        }
        for (int n = 0; n < 8; n++) lab.send(topic, n % 2, "", "to all " + n);
        Lab.eventually("both", () -> seen.get(0).size() >= 8 && seen.get(1).size() >= 8);
        for (DefaultMQPushConsumer consumer : consumers) consumer.shutdown();
        for (Set<String> bodies : seen) lab.say("%s", bodies);
    }

    static Set<MessageQueue> owned(DefaultMQPushConsumer consumer, String topic) {
        Set<MessageQueue> queues = new HashSet<>(
            consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet());
        queues.removeIf(queue -> !queue.getTopic().equals(topic));
        return queues;
    }

    /** The broker tells the others when one comes or goes: they need not wait for their 20 s. */
    static void rebalance(Lab lab) throws Exception {
        String topic = lab.topic(4);
        DefaultMQPushConsumer first = lab.consumer("readers");
        first.subscribe(topic, "*");
        listening(first, new ConcurrentSkipListSet<>());
        Lab.eventually("all four", () -> owned(first, topic).size() == 4);
        lab.say("alone: 4");
        DefaultMQPushConsumer second = lab.consumer("readers");
        second.subscribe(topic, "*");
        long began = System.currentTimeMillis();
        listening(second, new ConcurrentSkipListSet<>());
        Lab.eventually("two each", () -> owned(first, topic).size() == 2 && owned(second, topic).size() == 2);
        lab.say("two each, at once: %s", System.currentTimeMillis() - began < 12_000);
        began = System.currentTimeMillis();
        second.shutdown();
        Lab.eventually("all four again", () -> owned(first, topic).size() == 4);
        lab.say("alone again, at once: %s", System.currentTimeMillis() - began < 12_000);
        first.shutdown();
    }
}
