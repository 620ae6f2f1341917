import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Writes messages to one broker, and looks for each of them at the one that has its store next.
 *
 * java HandOver NAME_SERVER write TOPIC FIRST COUNT   prints "number queue offset uniqueId id" each
 * java HandOver NAME_SERVER check TOPIC               reads those lines, prints how each was found
 * java HandOver NAME_SERVER go-on TOPIC FIRST COUNT   the one and then the other
 */
public class HandOver {
    static final long PATIENCE_MS = 10_000;

    public static void main(String[] args) throws Exception {
        if (!args[1].equals("write")) check(args[0], args[2]);
        if (!args[1].equals("check")) write(args[0], args[2], Integer.parseInt(args[3]), Integer.parseInt(args[4]));
        System.out.flush();
        Runtime.getRuntime().halt(0); // the clients' own threads would keep us for seconds
    }

    /** A body of up to 6 KB that its number alone decides. */
    static byte[] body(int number) {
        byte[] body = new byte[1 + number * 37 % 6000];
        new Random(number).nextBytes(body);
        return body;
    }

    static void write(String nameServer, String topic, int first, int count) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("writers");
        producer.setNamesrvAddr(nameServer);
        producer.setSendMsgTimeout(20_000);
        producer.setMqClientApiTimeout(20_000);
        producer.start();
        List<MessageQueue> queues = new ArrayList<>(producer.fetchPublishMessageQueues(topic));
        queues.sort(null);
        for (int number = first; number < first + count; number++) {
            MessageQueue queue = queues.get(number % queues.size());
            if (number % 10 == 9) { // a batch of three, whose places stand in one answer
                List<Message> messages = new ArrayList<>();
                for (int part = 0; part < 3; part++) messages.add(message(topic, number + part * 100_000));
                SendResult result = producer.send(messages, queue);
                for (int part = 0; part < 3; part++) {
                    System.out.println((number + part * 100_000) + " " + queue.getQueueId() + " " + (result.getQueueOffset() + part)
                        + " " + result.getMsgId().split(",")[part] + " " + result.getOffsetMsgId().split(",")[part]);
                }
            } else {
                SendResult result = producer.send(message(topic, number), queue);
                System.out.println(number + " " + queue.getQueueId() + " " + result.getQueueOffset()
                    + " " + result.getMsgId() + " " + result.getOffsetMsgId());
            }
        }
    }

    static Message message(String topic, int number) {
        Message message = new Message(topic, "T" + number % 3, body(number));
        message.setKeys("key" + number);
        message.putUserProperty("number", "" + number);
        return message;
    }

    static void check(String nameServer, String topic) throws Exception {
        DefaultMQPullConsumer puller = new DefaultMQPullConsumer("checkers");
        puller.setNamesrvAddr(nameServer);
        puller.setMqClientApiTimeout(20_000);
        puller.start();
        Map<String, MessageExt> pulled = new HashMap<>();
        for (MessageQueue queue : puller.fetchSubscribeMessageQueues(topic)) pull(puller, queue, pulled);
        int wrong = 0;
        int count = 0;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; count++) {
            String problem = problem(puller, topic, line.split(" "), pulled);
            if (problem != null && wrong++ < 20) System.out.println(line + ": " + problem);
        }
        System.out.println(pulled.size() + " pulled, " + count + " looked for, " + wrong + " wrong");
    }

    static void pull(DefaultMQPullConsumer puller, MessageQueue queue, Map<String, MessageExt> pulled) throws Exception {
        for (long at = puller.minOffset(queue); at < puller.maxOffset(queue); ) {
            PullResult result = puller.pull(queue, "*", at, 32);
            if (result.getPullStatus() == PullStatus.FOUND) {
                for (MessageExt message : result.getMsgFoundList()) {
                    pulled.put(message.getQueueId() + " " + message.getQueueOffset(), message);
                }
            }
            at = result.getNextBeginOffset();
        }
    }

    /** Tell what is wrong with a message, by pull, by its id, by its unique id and by its key. */
    static String problem(DefaultMQPullConsumer puller, String topic, String[] words, Map<String, MessageExt> pulled) {
        int number = Integer.parseInt(words[0]);
        if (!isIt(pulled.get(words[1] + " " + words[2]), number)) return "not pulled";
        try {
            if (!isIt(puller.viewMessage(topic, words[4]), number)) return "not viewed by id";
            if (number % 5 != 4) return null; // a query costs more, and the index treats all alike
            long end = System.currentTimeMillis() + PATIENCE_MS;
            while (true) { // a broker that has just started may still be at its index
                String found = indexed(puller, topic, words[3], number);
                if (found == null || System.currentTimeMillis() > end) return found;
                Thread.sleep(50);
            }
        } catch (Exception error) {
            return error.toString();
        }
    }

    static String indexed(DefaultMQPullConsumer puller, String topic, String uniqueId, int number) throws Exception {
        try {
            // 4.9.8 does not find those of a batch so, its own ones neither.
            boolean isBatched = number % 10 == 9;
            if (!isBatched && !isIt(puller.viewMessage(topic, uniqueId), number)) return "not found by unique id";
        } catch (org.apache.rocketmq.client.exception.MQClientException error) {
            return "no answer by unique id: " + error.getResponseCode();
        }
        try {
            List<MessageExt> byKey = puller.queryMessage(topic, "key" + number, 8, 0, Long.MAX_VALUE).getMessageList();
            return byKey.size() == 1 && isIt(byKey.get(0), number) ? null : byKey.size() + " found by key";
        } catch (org.apache.rocketmq.client.exception.MQClientException error) {
            return "no answer by key: " + error.getResponseCode();
        }
    }

    static boolean isIt(MessageExt message, int number) {
        return message != null && message.getProperty("number").equals("" + number)
            && java.util.Arrays.equals(message.getBody(), body(number));
    }
}
