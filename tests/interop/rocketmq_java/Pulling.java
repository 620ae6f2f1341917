import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.QueryResult;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Pull consumers, offsets, searches by time, and queries by key and id. */
final class Pulling {
    private Pulling() {}

    static void pulled(Lab lab, String what, PullResult result) {
        List<String> bodies = new ArrayList<>();
        if (result.getMsgFoundList() != null) {
            for (MessageExt message : result.getMsgFoundList()) bodies.add(Lab.text(message));
        }
        lab.say("%s: %s next %d min %d max %d %s", what, result.getPullStatus(),
            result.getNextBeginOffset(), result.getMinOffset(), result.getMaxOffset(), bodies);
    }

    static void pull(Lab lab) throws Exception {
        String topic = lab.topic(2);
        MessageQueue queue = Lab.queue(topic, 0);
        DefaultMQPullConsumer puller = lab.puller();
        pulled(lab, "nothing yet", puller.pull(queue, "*", 0, 4));
        pulled(lab, "nothing at 5", puller.pull(queue, "*", 5, 4));
        for (int n = 0; n < 12; n++) lab.send(topic, 0, "" + (char) ('A' + n % 3), "message " + n);
        lab.drain(topic, 12);
        pulled(lab, "first", puller.pull(queue, "*", 0, 4));
        pulled(lab, "middle", puller.pull(queue, "*", 7, 3));
        pulled(lab, "last", puller.pull(queue, "*", 11, 32));
        pulled(lab, "end", puller.pull(queue, "*", 12, 32));
        pulled(lab, "beyond", puller.pull(queue, "*", 13, 32));
        pulled(lab, "far beyond", puller.pull(queue, "*", 1000, 32));
        pulled(lab, "tag A", puller.pull(queue, "A", 0, 32));
        pulled(lab, "tags A || C", puller.pull(queue, "A || C", 2, 5));
        pulled(lab, "no such tag", puller.pull(queue, "Z", 0, 32));
        pulled(lab, "other queue", puller.pull(Lab.queue(topic, 1), "*", 0, 32));
        lab.say("min %d max %d", puller.minOffset(queue), puller.maxOffset(queue));
        lab.say("no offset: %d", puller.fetchConsumeOffset(queue, true));
        puller.updateConsumeOffset(queue, 9);
        puller.getDefaultMQPullConsumerImpl().getOffsetStore().persist(queue);
        Lab.eventually("the offset", () -> puller.fetchConsumeOffset(queue, true) == 9);
        lab.say("offset: %d", puller.fetchConsumeOffset(queue, true));
    }

    /** A pull that waits is answered when a message comes, and at the end of its time. */
    static void waiting(Lab lab) throws Exception {
        String topic = lab.topic(1);
        MessageQueue queue = Lab.queue(topic, 0);
        DefaultMQPullConsumer puller = lab.puller();
        AtomicInteger unmatched = new AtomicInteger();
        CompletableFuture<PullResult> waits = CompletableFuture.supplyAsync(() -> {
            try {
                PullResult result = puller.pullBlockIfNotFound(queue, "B", 0, 4);
                // Every five seconds a broker looks at all who wait, whatever tag they wait for.
                while (result.getPullStatus() == PullStatus.NO_MATCHED_MSG && unmatched.incrementAndGet() < 3) {
                    result = puller.pullBlockIfNotFound(queue, "B", result.getNextBeginOffset(), 4);
                }
                return result;
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        });
        Thread.sleep(700);
        lab.say("waits: %s", !waits.isDone());
        lab.send(topic, 0, "A", "not wanted");
        Thread.sleep(300);
        lab.say("still waits: %s", !waits.isDone());
        long began = System.currentTimeMillis();
        lab.send(topic, 0, "B", "wanted");
        pulled(lab, "woken", waits.get());
        lab.say("at once: %s", System.currentTimeMillis() - began < 3000);
        lab.say("woken in vain once at most: %s", unmatched.get() <= 1);
    }

    static DefaultLitePullConsumer liteConsumer(Lab lab, String suffix) {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(lab.group(suffix));
        consumer.setNamesrvAddr(lab.nameServer);
        consumer.setInstanceName(Lab.clientName());
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setMqClientApiTimeout(20_000);
        consumer.setPollNameServerInterval(1_000);
        consumer.setHeartbeatBrokerInterval(1_000);
        return consumer;
    }

    static void lite(Lab lab) throws Exception {
        String topic = lab.topic(2);
        for (int n = 0; n < 10; n++) lab.send(topic, n % 2, n < 4 ? "A" : "B", "lite " + n);
        DefaultLitePullConsumer subscriber = liteConsumer(lab, "subscribers");
        subscriber.subscribe(topic, "B");
        subscriber.start();
        TreeSet<String> found = new TreeSet<>();
        Lab.eventually("six of tag B", () -> {
            for (MessageExt message : subscriber.poll(200)) found.add(Lab.text(message));
            return found.size() >= 6;
        });
        lab.say("subscribed: %s", found);
        subscriber.commitSync();
        Lab.eventually("commits", () -> subscriber.committed(Lab.queue(topic, 0)) == 5
            && subscriber.committed(Lab.queue(topic, 1)) == 5);
        lab.say("committed: %d", subscriber.committed(Lab.queue(topic, 0)));
        subscriber.shutdown();
        DefaultLitePullConsumer assigned = liteConsumer(lab, "assigned");
        assigned.setAutoCommit(false);
        assigned.start();
        Collection<MessageQueue> queues = assigned.fetchMessageQueues(topic);
        lab.say("queues: %d", queues.size());
        assigned.assign(List.of(Lab.queue(topic, 1)));
        List<String> all = new ArrayList<>();
        Lab.eventually("five from the start", () -> {
            for (MessageExt message : assigned.poll(200)) all.add(Lab.text(message));
            return all.size() >= 5;
        });
        lab.say("from 0: %s", all);
        // Only now: an answer that is under way while it seeks can still slip in.
        assigned.seek(Lab.queue(topic, 1), 3);
        List<String> rest = Collections.synchronizedList(new ArrayList<>());
        Lab.eventually("two from offset 3", () -> {
            for (MessageExt message : assigned.poll(200)) rest.add(Lab.text(message));
            return rest.size() >= 2;
        });
        lab.say("from 3: %s", rest);
        assigned.shutdown();
    }

    static void times(Lab lab) throws Exception {
        String topic = lab.topic(1);
        MessageQueue queue = Lab.queue(topic, 0);
        lab.say("empty: %d", lab.puller().searchOffset(queue, System.currentTimeMillis()));
        for (int n = 0; n < 6; n++) {
            lab.send(topic, 0, "", "at " + n);
            Thread.sleep(40);
        }
        List<MessageExt> found = lab.drain(topic, 6);
        for (MessageExt message : found) {
            lab.say("at its time: %d", lab.puller().searchOffset(queue, message.getStoreTimestamp()));
        }
        long first = found.get(0).getStoreTimestamp();
        long last = found.get(5).getStoreTimestamp();
        lab.say("long before: %d", lab.puller().searchOffset(queue, first - 1_000_000));
        lab.say("just before: %d", lab.puller().searchOffset(queue, first - 1));
        lab.say("just behind: %d", lab.puller().searchOffset(queue, last + 1));
        lab.say("long behind: %d", lab.puller().searchOffset(queue, last + 1_000_000));
        lab.say("earliest is the first: %s", lab.puller().earliestMsgStoreTime(queue) == first);
    }

    static List<String> answers(Lab lab, String topic, String key, int count, long begin, long end)
        throws Exception {
        List<String> bodies = new ArrayList<>();
        try {
            QueryResult result = lab.puller().queryMessage(topic, key, count, begin, end);
            for (MessageExt message : result.getMessageList()) bodies.add(Lab.text(message));
        } catch (org.apache.rocketmq.client.exception.MQClientException none) {
            bodies.add("code " + none.getResponseCode());
        }
        Collections.sort(bodies);
        return bodies;
    }

    static void query(Lab lab) throws Exception {
        String topic = lab.topic(2);
        List<SendResult> results = new ArrayList<>();
        for (int n = 0; n < 9; n++) {
            Message message = lab.message(topic, n % 2 == 0 ? "even" : "odd", "keyed " + n);
            message.setKeys("key" + n % 3 + " all Aa" + n);
            results.add(lab.producer().send(message, Lab.queue(topic, n % 2)));
        }
        Lab.eventually("the index", () -> answers(lab, topic, "all", 32, 0, Long.MAX_VALUE).size() == 9);
        for (String key : List.of("key0", "key1", "key2", "all", "Aa4", "BB4", "none")) {
            lab.say("%s: %s", key, answers(lab, topic, key, 32, 0, Long.MAX_VALUE));
        }
        List<MessageExt> found = lab.drain(topic, 9);
        lab.say("at most 4: %d", answers(lab, topic, "all", 4, 0, Long.MAX_VALUE).size());
        lab.say("in the past: %s", answers(lab, topic, "all", 32, 0, found.get(0).getStoreTimestamp() - 10_000));
        lab.say("in the future: %s", answers(lab, topic, "all", 32, System.currentTimeMillis() + 10_000, Long.MAX_VALUE));
        for (SendResult result : results) {
            MessageExt byUnique = lab.puller().viewMessage(topic, result.getMsgId());
            MessageExt byId = lab.puller().viewMessage(topic, result.getOffsetMsgId());
            lab.say("%s | %s", Lab.text(byUnique), Lab.shown(byId));
        }
    }
}
