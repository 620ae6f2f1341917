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
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.LitePushConsumer;
import org.apache.rocketmq.client.apis.consumer.OffsetOption;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;

/** Lite topics with the official Java client: LiteScenarios ENDPOINTS. */
public class LiteScenarios {
    private static final ClientServiceProvider PROVIDER = ClientServiceProvider.loadService();
    private static final String PARENT = "parent";
    private static final long PATIENCE_MS = 90_000;
    private static final Map<String, Boolean> FAILED = new ConcurrentHashMap<>();
    private static ClientConfiguration configuration;

    public static void main(String[] args) throws Exception {
        configuration = ClientConfiguration.newBuilder()
            .setEndpoints(args[0])
            .setRequestTimeout(Duration.ofSeconds(30)).build();
        Producer producer = started(() -> PROVIDER.newProducerBuilder()
            .setClientConfiguration(configuration).setTopics(PARENT).build());
        pushed(producer);
        fromThere(producer);
        alone(producer);
        refused(producer);
        producer.close();
        System.exit(0);
    }

    /** Messages of two lite topics; one fails, and comes again, with those behind it. */
    private static void pushed(Producer producer) throws Exception {
        System.out.println("== pushed");
        send(producer, "j-chat", "1");
        send(producer, "j-chat", "fails once");
        send(producer, "j-chat", "3");
        send(producer, "j-other", "unread");
        List<String> seen = Collections.synchronizedList(new ArrayList<>());
        LitePushConsumer consumer = consumer("lite_readers", seen);
        consumer.subscribeLite("j-chat", OffsetOption.MIN_OFFSET);
        consumer.subscribeLite("j-news", OffsetOption.MIN_OFFSET);
        System.out.println(new TreeSet<>(consumer.getLiteTopicSet()));
        send(producer, "j-news", "a");
        show(seen, 6);  // the client does not say of which lite topic it is: it takes a minute
        consumer.unsubscribeLite("j-news");
        send(producer, "j-news", "b");
        send(producer, "j-chat", "4");
        show(seen, 1);
        consumer.close();
    }

    /** A consumer that begins with the first message, another behind the last. */
    private static void fromThere(Producer producer) throws Exception {
        System.out.println("== from there");
        for (String body : new String[] {"a", "b", "c"}) send(producer, "j-there", body);
        List<String> seen = Collections.synchronizedList(new ArrayList<>());
        LitePushConsumer consumer = consumer("lite_readers", seen);
        consumer.subscribeLite("j-there", OffsetOption.ofOffset(1));
        show(seen, 2);
        consumer.close();
        consumer = consumer("lite_readers", seen);
        consumer.subscribeLite("j-there", OffsetOption.MAX_OFFSET);
        send(producer, "j-there", "d");
        show(seen, 1);
        consumer.close();
    }

    /** Of an exclusive group one consumer reads a lite topic: the one that came last. */
    private static void alone(Producer producer) throws Exception {
        System.out.println("== alone");
        List<String> first = Collections.synchronizedList(new ArrayList<>());
        List<String> second = Collections.synchronizedList(new ArrayList<>());
        LitePushConsumer before = consumer("alone", first);
        before.subscribeLite("j-solo", OffsetOption.MIN_OFFSET);
        send(producer, "j-solo", "to the first");
        show(first, 1);
        LitePushConsumer after = consumer("alone", second);
        after.subscribeLite("j-solo");
        long until = System.currentTimeMillis() + PATIENCE_MS;
        while (!before.getLiteTopicSet().isEmpty() && System.currentTimeMillis() < until) {
            Thread.sleep(20);
        }
        System.out.println(before.getLiteTopicSet() + " " + after.getLiteTopicSet());
        send(producer, "j-solo", "to the second");
        show(second, 1);
        before.close();
        after.close();
    }

    private static void refused(Producer producer) throws Exception {
        System.out.println("== refused");
        refusal("lite topic", () -> send(producer, "a$b", "x"));
        refusal("none", () -> producer.send(PROVIDER.newMessageBuilder()
            .setTopic(PARENT).setBody("x".getBytes(StandardCharsets.UTF_8)).build()));
        refusal("plain group", () -> consumer("others", new ArrayList<>()));
        LitePushConsumer few = consumer("few", new ArrayList<>());
        few.subscribeLite("one");
        refusal("one too many", () -> {
            few.subscribeLite("two");
            return null;
        });
        few.close();
    }

    private static void refusal(String name, Callable<?> call) {
        try {
            call.call();
            System.out.println("!! " + name + " is allowed");
        } catch (Throwable refused) {
            System.out.println(name + ": " + refused.getClass().getSimpleName());
        }
    }

    private static LitePushConsumer consumer(String group, List<String> seen) throws Exception {
        return started(() -> PROVIDER.newLitePushConsumerBuilder()
            .setClientConfiguration(configuration)
            .setConsumerGroup(group)
            .bindTopic(PARENT)
            .setMessageListener(view -> {
                String body = body(view);
                boolean fails = body.startsWith("fails") && FAILED.put(body, true) == null;
                seen.add(view.getLiteTopic().orElse("?") + ": " + body + " "
                    + view.getDeliveryAttempt() + (fails ? " failed" : ""));
                return fails ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
            })
            .build());
    }

    private static Object send(Producer producer, String liteTopic, String body) throws Exception {
        return producer.send(PROVIDER.newMessageBuilder().setTopic(PARENT).setLiteTopic(liteTopic)
            .setBody(body.getBytes(StandardCharsets.UTF_8)).build());
    }

    /** Print what was seen once it is so much, sorted, and forget it. */
    private static void show(List<String> seen, int count) throws Exception {
        long until = System.currentTimeMillis() + PATIENCE_MS;
        while (seen.size() < count && System.currentTimeMillis() < until) Thread.sleep(20);
        if (seen.size() < count) System.out.println("!! " + count + " should come");
        List<String> sorted = new ArrayList<>(seen);
        Collections.sort(sorted);  // messages of one answer are consumed at the same time
        sorted.forEach(System.out::println);
        seen.clear();
    }

    private static String body(MessageView view) {
        return StandardCharsets.UTF_8.decode(view.getBody()).toString();
    }

    /** What is built starts before it is returned, which may take too long on a busy machine. */
    private static <T> T started(Callable<T> build) throws Exception {
        for (int left = 4; ; left--) {
            try {
                return build.call();
            } catch (IllegalStateException busy) {
                if (left == 0) throw busy;
            }
        }
    }
}
