import java.util.ArrayList;
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
                asked.put(Lab.text(message), message.getTopic() + " " + message.getTags() + " " + message.getKeys());
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
        List<String> found = new ArrayList<>();
        for (MessageExt message : lab.drain(topic, 3)) {
            found.add(Lab.shown(message) + " prepared=" + (message.getPreparedTransactionOffset() > 0));
        }
        for (String line : found) lab.say("%s", line);
        lab.say("half messages can be pulled: %s", lab.puller().fetchSubscribeMessageQueues("RMQ_SYS_TRANS_HALF_TOPIC").size());
        producer.shutdown();
    }

    private static MessageExt shell(Message message) {
        MessageExt made = new MessageExt();
        made.setBody(message.getBody());
        return made;
    }
}
