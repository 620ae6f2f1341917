import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientException;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.FilterExpressionType;
import org.apache.rocketmq.client.apis.consumer.PushConsumer;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.Message;
import org.apache.rocketmq.client.apis.message.MessageBuilder;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.Transaction;
import org.apache.rocketmq.client.apis.producer.TransactionResolution;

/** The official Java client of RocketMQ 5, which speaks gRPC: GrpcScenarios ENDPOINTS. */
public class GrpcScenarios {
    private static final ClientServiceProvider PROVIDER = ClientServiceProvider.loadService();
    private static final Duration WAIT = Duration.ofSeconds(5);
    private static final Duration INVISIBLE = Duration.ofSeconds(15);
    private static final long PATIENCE_MS = 40_000;
    private static ClientConfiguration configuration;

    public static void main(String[] args) throws Exception {
        configuration = ClientConfiguration.newBuilder()
            .setEndpoints(args[0])  // by TLS, as it does by itself
            .setRequestTimeout(Duration.ofSeconds(30)).build();  // 3 by itself: machines may be busy
        Producer producer = started(() -> PROVIDER.newProducerBuilder()
            .setClientConfiguration(configuration).setTopics("normal", "fifo").build());
        sendAndReceive(producer);
        inOrder(producer);
        transactions();
        refused(producer);
        producer.close();
        System.exit(0);
    }

    private static void sendAndReceive(Producer producer) throws Exception {
        System.out.println("== received");
        SimpleConsumer consumer = consumerOf("normal", "java_readers", "wanted");
        producer.send(message("normal", "a", "wanted").build());
        producer.send(message("normal", "b", "unwanted").build());
        producer.send(message("normal", "x".repeat(100_000), "wanted").build());
        for (MessageView view : received(consumer, 2)) {
            System.out.println(shown(view));
            consumer.ack(view);
        }
        producer.send(message("normal", "again", "wanted").build());
        for (MessageView view : received(consumer, 1)) {
            consumer.changeInvisibleDuration(view, Duration.ofSeconds(10));
        }
        for (MessageView view : received(consumer, 1)) {
            System.out.println(shown(view));
            consumer.ack(view);
        }
        consumer.close();
    }

    private static void inOrder(Producer producer) throws Exception {
        System.out.println("== in order");
        consumerOf("fifo", "in_order", "*").close();
        List<String> seen = Collections.synchronizedList(new ArrayList<>());
        Map<String, Boolean> failed = new ConcurrentHashMap<>();
        PushConsumer consumer = started(() -> PROVIDER.newPushConsumerBuilder()
            .setClientConfiguration(configuration)
            .setConsumerGroup("in_order")
            .setSubscriptionExpressions(Map.of("fifo", tags("*")))
            .setMessageListener(view -> {
                boolean fails = body(view).equals("2") && failed.put("2", true) == null;
                seen.add(shown(view) + (fails ? " failed" : ""));
                return fails ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
            })
            .build());
        for (int number = 0; number < 4; number++) {
            String text = String.valueOf(number);
            producer.send(message("fifo", text, "t").setMessageGroup("java").build());
        }
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (seen.size() < 5 && System.currentTimeMillis() < deadline) {
            Thread.sleep(50);
        }
        List.copyOf(seen).forEach(System.out::println);
        consumer.close();
    }

    private static void transactions() throws Exception {
        System.out.println("== transactions");
        Producer producer = started(() -> PROVIDER.newProducerBuilder()
            .setClientConfiguration(configuration)
            .setTopics("transaction")
            .setTransactionChecker(view -> TransactionResolution.COMMIT)
            .build());
        SimpleConsumer consumer = consumerOf("transaction", "java_transactions", "*");
        for (String text : List.of("rolled back", "committed")) {
            Transaction transaction = producer.beginTransaction();
            producer.send(message("transaction", text, "t").build(), transaction);
            if (text.equals("committed")) {
                transaction.commit();
            } else {
                transaction.rollback();
            }
        }
        for (MessageView view : received(consumer, 1)) {
            System.out.println(shown(view));
            consumer.ack(view);
        }
        consumer.close();
        producer.close();
    }

    private static void refused(Producer producer) {
        System.out.println("== refused");
        try {
            producer.send(message("none", "x", "t").build());
            System.out.println("!! there is no such topic");
        } catch (ClientException error) {
            System.out.println(error.getClass().getSimpleName());
        }
    }

    /** A client that came up: on a busy machine its settings may be too late for it at first. */
    private static <T> T started(Callable<T> build) throws Exception {
        for (int left = 4; ; left--) {
            try {
                return build.call();
            } catch (IllegalStateException busy) {
                if (left == 0) throw busy;
            }
        }
    }

    /** A consumer of a new group, that has seen what was there before. */
    private static SimpleConsumer consumerOf(String topic, String group, String tags)
        throws Exception {
        SimpleConsumer consumer = started(() -> PROVIDER.newSimpleConsumerBuilder()
            .setClientConfiguration(configuration)
            .setConsumerGroup(group)
            .setAwaitDuration(WAIT)
            .setSubscriptionExpressions(Map.of(topic, tags(tags)))
            .build());
        for (MessageView view : consumer.receive(32, INVISIBLE)) {
            consumer.ack(view);
        }
        return consumer;
    }

    private static FilterExpression tags(String expression) {
        return new FilterExpression(expression, FilterExpressionType.TAG);
    }

    /** So many messages, by their bodies. */
    private static List<MessageView> received(SimpleConsumer consumer, int count)
        throws ClientException {
        List<MessageView> found = new ArrayList<>();
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (found.size() < count && System.currentTimeMillis() < deadline) {
            found.addAll(consumer.receive(16, INVISIBLE));
        }
        found.sort((one, other) -> body(one).compareTo(body(other)));
        return found;
    }

    private static MessageBuilder message(String topic, String body, String tag) {
        return PROVIDER.newMessageBuilder()
            .setTopic(topic)
            .setTag(tag)
            .setKeys("key-" + body.length())
            .addProperty("color", "blue")
            .setBody(body.getBytes(StandardCharsets.UTF_8));
    }

    private static String body(MessageView view) {
        return StandardCharsets.UTF_8.decode(view.getBody()).toString();
    }

    private static String shown(MessageView view) {
        String body = body(view);
        return String.join(" ", view.getTopic(), body.length() > 20 ? "long" : body,
            view.getTag().orElse("-"), view.getKeys().toString(), new TreeSet<>(view.getProperties().keySet()).toString(),
            view.getMessageGroup().orElse("-"), String.valueOf(view.getDeliveryAttempt()));
    }
}
