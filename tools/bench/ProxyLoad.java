import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.PushConsumer;
import org.apache.rocketmq.client.apis.producer.Producer;

/**
 * Loads proxies with the official Java client that speaks gRPC, at its default settings (TLS). A line
 * of standard input is one measurement, its words separated by blanks; the answer is one line of
 * JSON, as that of RocketMQLoad.java.
 *
 *   send ENDPOINTS TOPIC SIZE SECONDS THREADS
 *   consume ENDPOINTS TOPIC SIZE SECONDS       of a push consumer, from its first message on
 */
public class ProxyLoad {
    static final ClientServiceProvider PROVIDER = ClientServiceProvider.loadService();
    static final Map<String, Producer> PRODUCERS = new HashMap<>();
    static final long PATIENCE_NANOS = 60_000_000_000L;
    static int groups = 0;

    public static void main(String[] args) throws Exception {
        LoadLines.answer(ProxyLoad::measure);
    }

    static String measure(String[] words) throws Exception {
        double seconds = Double.parseDouble(words[4]);
        switch (words[0]) {
            case "send": return send(words[1], words[2], new byte[Integer.parseInt(words[3])], seconds, Integer.parseInt(words[5]));
            case "consume": return consume(words[1], words[2], seconds);
            default: throw new IllegalArgumentException(words[0]);
        }
    }

    static ClientConfiguration at(String endpoints) {
        return ClientConfiguration.newBuilder().setEndpoints(endpoints).build();
    }

    static Producer producer(String endpoints, String topic) throws Exception {
        Producer found = PRODUCERS.get(endpoints);
        if (found == null) {
            found = PROVIDER.newProducerBuilder().setClientConfiguration(at(endpoints)).setTopics(topic).build();
            PRODUCERS.put(endpoints, found);
        }
        return found;
    }

    static String send(String endpoints, String topic, byte[] body, double seconds, int threads) throws Exception {
        Producer producer = producer(endpoints, topic);
        AtomicReference<Exception> failed = new AtomicReference<>();
        List<List<Long>> all = new ArrayList<>();
        CountDownLatch done = new CountDownLatch(threads);
        long began = System.nanoTime();
        long end = began + (long) (seconds * 1e9);
        for (int n = 0; n < threads; n++) {
            List<Long> samples = new ArrayList<>();
            all.add(samples);
            new Thread(() -> {
                try {
                    for (long now = System.nanoTime(); now < end && failed.get() == null; ) {
                        producer.send(PROVIDER.newMessageBuilder().setTopic(topic).setBody(body).build());
                        long then = System.nanoTime();
                        samples.add(then - now);
                        now = then;
                    }
                } catch (Exception error) {
                    failed.set(error);
                }
                done.countDown();
            }).start();
        }
        done.await();
        if (failed.get() != null) throw failed.get();
        long[] sorted = all.stream().flatMap(List::stream).mapToLong(Long::longValue).sorted().toArray();
        return report(sorted.length, System.nanoTime() - began, sorted);
    }

    static String consume(String endpoints, String topic, double seconds) throws Exception {
        AtomicLong count = new AtomicLong();
        PushConsumer consumer = PROVIDER.newPushConsumerBuilder()
            .setClientConfiguration(at(endpoints))
            .setConsumerGroup("bench_readers_" + System.nanoTime() + "_" + groups++)
            .setSubscriptionExpressions(Map.of(topic, FilterExpression.SUB_ALL))
            .setMessageListener(message -> {
                count.incrementAndGet();
                return ConsumeResult.SUCCESS;
            })
            .build();
        try {
            for (long limit = System.nanoTime() + PATIENCE_NANOS; count.get() == 0; Thread.sleep(1)) {
                if (System.nanoTime() > limit) throw new IllegalStateException("the consumer hears nothing");
            }
            Thread.sleep((long) (seconds * 200)); // it comes up
            long before = count.get();
            long began = System.nanoTime();
            Thread.sleep((long) (seconds * 1000));
            long after = count.get();
            return report(after - before, System.nanoTime() - began, new long[] {0});
        } finally {
            consumer.close();
        }
    }

    static String report(long messages, long nanos, long[] sorted) {
        return String.format(java.util.Locale.ROOT,
            "{\"messages\": %d, \"seconds\": %.6f, \"p50_us\": %.1f, \"p99_us\": %.1f}",
            messages, nanos / 1e9, LoadLines.rank(sorted, 0.5), LoadLines.rank(sorted, 0.99));
    }
}
