import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Transactions that are committed, rolled back, and decided when the broker asks. */
final class Transactions {
    private Transactions() {}

    static LocalTransactionState state(String text) {
        switch (text) {
            case "commit": return LocalTransactionState.COMMIT_MESSAGE;
            case "rollback": return LocalTransactionState.ROLLBACK_MESSAGE;
            default: return LocalTransactionState.UNKNOW;
        }
    }

    static void transactions(Lab lab) throws Exception {
        String topic = lab.topic(1);
        Map<String, String> asked = new ConcurrentHashMap<>();
        TransactionMQProducer producer = new TransactionMQProducer(lab.group("deciders"));
        producer.setTransactionListener(new TransactionListener() {
            public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
                return state(message.getProperty("first"));
            }

            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                asked.put(Lab.text(message), message.getTopic() + " " + message.getTags() + " " + message.getKeys() + " WAIT=" + message.getProperty("WAIT"));
                return state(message.getProperty("asked"));
            }
        });
        lab.prepared(producer);
        String[][] plan = {
            {"commit", "none"}, {"rollback", "none"}, {"none", "commit"}, {"none", "rollback"}, {"commit", "none"},
        };
        int number = 0;
        for (String[] one : plan) {
            Message message = lab.message(topic, "T", one[0] + " " + one[1] + " " + number);
            message.setKeys("k" + number++);
            message.putUserProperty("first", one[0]);
            message.putUserProperty("asked", one[1]);
            var result = producer.sendMessageInTransaction(message, null);
            lab.say("%s: %s %s", Lab.text(shell(message)), result.getSendStatus(), result.getLocalTransactionState());
        }
        // Asked about a decided one, too, where its decision was not written down in time.
        Lab.eventually("two check-backs", () -> asked.keySet().stream().filter(body -> body.startsWith("none")).count() >= 2);
        asked.keySet().removeIf(body -> !body.startsWith("none"));
        new TreeMap<>(asked).forEach((body, what) -> lab.say("asked about %s: %s", body, what));
        long place = 0;
        for (MessageExt message : committed(lab, topic, 3)) {
            message.setQueueOffset(place++);
            lab.say("%s prepared=%s", Lab.shown(message), message.getPreparedTransactionOffset() > 0);
        }
        lab.say("half messages can be pulled: %s", lab.puller().fetchSubscribeMessageQueues("RMQ_SYS_TRANS_HALF_TOPIC").size());
        producer.shutdown();
    }

    /**
     * The committed messages in order, each as it came first. One that is asked about twice is
     * answered twice, and any broker puts what it is told to: whether it asks twice depends on when
     * its check falls between two op messages. A repeat of what was never asked about is a fault.
     */
    private static List<MessageExt> committed(Lab lab, String topic, int count) throws Exception {
        Map<String, MessageExt> firsts = new LinkedHashMap<>();
        Lab.eventually(count + " committed messages", () -> {
            firsts.clear();
            for (MessageExt message : lab.drain(topic, count)) {
                boolean isRepeat = firsts.putIfAbsent(Lab.text(message), message) != null;
                if (isRepeat && message.getProperty("TRANSACTION_CHECK_TIMES") == null) {
                    throw new IllegalStateException("put twice and never asked about: " + Lab.text(message));
                }
            }
            return firsts.size() >= count;
        });
        return new ArrayList<>(firsts.values());
    }

    private static MessageExt shell(Message message) {
        MessageExt made = new MessageExt();
        made.setBody(message.getBody());
        return made;
    }
}
