import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;

/**
 * Loads brokers with the official Java client. A line of standard input is one measurement, its
 * words separated by blanks; the answer is one line of JSON: what was done, in how many seconds,
 * and the percentiles of the single operations in microseconds.
 *
 *   first NAME_SERVER TOPIC SIZE               one send, tried until it is acknowledged
 *   sync NAME_SERVER TOPIC SIZE SECONDS THREADS
 *   async NAME_SERVER TOPIC SIZE SECONDS IN_FLIGHT
 *   batch NAME_SERVER TOPIC SIZE SECONDS THREADS MESSAGES
 *   pull NAME_SERVER TOPIC SIZE SECONDS        32 at a time, one thread, over and over again
 *   listen NAME_SERVER TOPIC SIZE SECONDS      from a send to the push consumer's listener
 *   push NAME_SERVER TOPIC MESSAGES KIND       all that is there, by a push consumer: "concurrently",
 *                                              "orderly" (queues are locked) or "broadcast"
 */
public class RocketMQLoad {
    static final int PULLED_AT_ONCE = 32;
    static final Map<String, DefaultMQProducer> PRODUCERS = new HashMap<>();
    static int clients = 0;

    /** One operation of a thread; returns how many messages it moved. */
    interface Step {
        int run() throws Exception;
    }

    /** What one thread did: a sample an operation. */
    static final class Samples {
        private long[] nanos = new long[1 << 14];
        private int count = 0;

        void add(long duration) {
            if (count == nanos.length) nanos = Arrays.copyOf(nanos, count * 2);
            nanos[count++] = duration;
        }
    }

    public static void main(String[] args) throws Exception {
        LoadLines.answer(RocketMQLoad::measure);
    }

    static String measure(String[] words) throws Exception {
        String nameServer = words[1];
        String topic = words[2];
        if (words[0].equals("push")) return push(nameServer, topic, Integer.parseInt(words[3]), words[4]);
        byte[] body = body(Integer.parseInt(words[3]));
        double seconds = words.length > 4 ? Double.parseDouble(words[4]) : 0;
        switch (words[0]) {
            case "first": return first(nameServer, topic, body);
            case "sync": return sync(nameServer, topic, body, seconds, Integer.parseInt(words[5]));
            case "async": return async(nameServer, topic, body, seconds, Integer.parseInt(words[5]));
            case "batch": return batch(nameServer, topic, body, seconds, Integer.parseInt(words[5]), Integer.parseInt(words[6]));
            case "pull": return pull(nameServer, topic, seconds);
            case "listen": return listen(nameServer, topic, body, seconds);
            default: throw new IllegalArgumentException(words[0]);
        }
    }

    static byte[] body(int size) {
        byte[] body = new byte[size];
        Random chance = new Random(size);
        for (int n = 0; n < size; n++) body[n] = (byte) ('a' + chance.nextInt(26));
        return body;
    }

    static DefaultMQProducer producer(String nameServer) throws Exception {
        DefaultMQProducer found = PRODUCERS.get(nameServer);
        if (found == null) {
            found = new DefaultMQProducer("bench_producers");
            found.setNamesrvAddr(nameServer);
            found.setInstanceName("bench" + clients++);
            found.setSendMsgTimeout(20_000);
            found.setRetryTimesWhenSendFailed(0);
            found.setRetryTimesWhenSendAsyncFailed(0);
            found.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE); // the broker is measured, not zlib
            found.start();
            PRODUCERS.put(nameServer, found);
        }
        return found;
    }

    static void require(SendResult result) {
        if (result.getSendStatus() != SendStatus.SEND_OK) throw new IllegalStateException("" + result.getSendStatus());
    }

    static String first(String nameServer, String topic, byte[] body) throws Exception {
        DefaultMQProducer producer = producer(nameServer);
        for (long end = System.nanoTime() + 60_000_000_000L; ; ) {
            try {
                require(producer.send(new Message(topic, body)));
                PRODUCERS.remove(nameServer);
                producer.shutdown();
                return "{\"messages\": 1}";
            } catch (Exception error) {
                if (System.nanoTime() > end) throw error;
                Thread.sleep(2);
            }
        }
    }

    static String sync(String nameServer, String topic, byte[] body, double seconds, int threads) throws Exception {
        DefaultMQProducer producer = producer(nameServer);
        return timed(threads, seconds, () -> {
            require(producer.send(new Message(topic, body)));
            return 1;
        });
    }

    static String batch(String nameServer, String topic, byte[] body, double seconds, int threads, int count) throws Exception {
        DefaultMQProducer producer = producer(nameServer);
        return timed(threads, seconds, () -> {
            List<Message> messages = new ArrayList<>(count);
            for (int n = 0; n < count; n++) messages.add(new Message(topic, body));
            require(producer.send(messages));
            return count;
        });
    }

    /** Have so many threads repeat a step for so long. */
    static String timed(int threads, double seconds, Step step) throws Exception {
        AtomicReference<Exception> failed = new AtomicReference<>();
        AtomicLong messages = new AtomicLong();
        List<Samples> all = new ArrayList<>();
        CountDownLatch done = new CountDownLatch(threads);
        long began = System.nanoTime();
        long end = began + (long) (seconds * 1e9);
        for (int n = 0; n < threads; n++) {
            Samples samples = new Samples();
            all.add(samples);
            new Thread(() -> {
                try {
                    long moved = 0;
                    for (long now = System.nanoTime(); now < end && failed.get() == null; ) {
                        moved += step.run();
                        long then = System.nanoTime();
                        samples.add(then - now);
                        now = then;
                    }
                    messages.addAndGet(moved);
                } catch (Exception error) {
                    failed.set(error);
                }
                done.countDown();
            }).start();
        }
        done.await();
        if (failed.get() != null) throw failed.get();
        return report(messages.get(), System.nanoTime() - began, all);
    }

    static String async(String nameServer, String topic, byte[] body, double seconds, int inFlight) throws Exception {
        DefaultMQProducer producer = producer(nameServer);
        Semaphore free = new Semaphore(inFlight);
        AtomicReference<Throwable> failed = new AtomicReference<>();
        Samples samples = new Samples();
        long began = System.nanoTime();
        long end = began + (long) (seconds * 1e9);
        while (System.nanoTime() < end && failed.get() == null) {
            free.acquire();
            long sent = System.nanoTime();
            producer.send(new Message(topic, body), new SendCallback() {
                public void onSuccess(SendResult result) {
                    synchronized (samples) {
                        samples.add(System.nanoTime() - sent);
                    }
                    if (result.getSendStatus() != SendStatus.SEND_OK) failed.set(new IllegalStateException("" + result));
                    free.release();
                }

                public void onException(Throwable error) {
                    failed.set(error);
                    free.release();
                }
            });
        }
        free.acquire(inFlight);
        if (failed.get() != null) throw new IllegalStateException(failed.get());
        return report(samples.count, System.nanoTime() - began, List.of(samples));
    }

    static String pull(String nameServer, String topic, double seconds) throws Exception {
        DefaultMQPullConsumer puller = new DefaultMQPullConsumer("bench_pullers");
        puller.setNamesrvAddr(nameServer);
        puller.setInstanceName("bench" + clients++);
        puller.start();
        try {
            MessageQueue queue = puller.fetchSubscribeMessageQueues(topic).iterator().next();
            AtomicLong at = new AtomicLong();
            return timed(1, seconds, () -> {
                PullResult result = puller.pull(queue, "*", at.get(), PULLED_AT_ONCE);
                boolean isFound = result.getPullStatus() == PullStatus.FOUND;
                at.set(isFound ? result.getNextBeginOffset() : 0);
                return isFound ? result.getMsgFoundList().size() : 0;
            });
        } finally {
            puller.shutdown();
        }
    }

    static String listen(String nameServer, String topic, byte[] body, double seconds) throws Exception {
        Map<String, Long> sentAt = new ConcurrentHashMap<>();
        Samples samples = new Samples();
        AtomicInteger seen = new AtomicInteger();
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("bench_listeners_" + clients);
        consumer.setNamesrvAddr(nameServer);
        consumer.setInstanceName("bench" + clients++);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setPollNameServerInterval(1000);
        consumer.setHeartbeatBrokerInterval(1000);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            long now = System.nanoTime();
            messages.forEach(message -> {
                Long sent = sentAt.get(String.valueOf(message.getKeys()));
                synchronized (samples) {
                    if (sent != null && sent > 0) samples.add(now - sent);
                }
                seen.incrementAndGet();
            });
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        try {
            return heard(producer(nameServer), topic, body, seconds, sentAt, seen, samples);
        } finally {
            consumer.shutdown();
        }
    }

    /** Take all messages of a topic; the clock runs from the first that is heard to the last. */
    static String push(String nameServer, String topic, int count, String kind) throws Exception {
        AtomicLong began = new AtomicLong();
        AtomicLong ended = new AtomicLong();
        AtomicInteger seen = new AtomicInteger();
        CountDownLatch done = new CountDownLatch(1);
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("bench_pushed_" + clients);
        consumer.setNamesrvAddr(nameServer);
        consumer.setInstanceName("bench" + clients++);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        if (kind.equals("broadcast")) consumer.setMessageModel(MessageModel.BROADCASTING);
        consumer.subscribe(topic, "*");
        Consumer<List<MessageExt>> heard = messages -> {
            long now = System.nanoTime();
            if (began.compareAndSet(0, now)) return; // what comes first is where the count begins
            if (seen.addAndGet(messages.size()) >= count && ended.compareAndSet(0, now)) done.countDown();
        };
        if (kind.equals("orderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                heard.accept(messages);
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                heard.accept(messages);
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        consumer.start();
        try {
            if (!done.await(60, TimeUnit.SECONDS)) throw new IllegalStateException(seen + " of " + count + " arrived");
            double took = (ended.get() - began.get()) / 1e9;
            return String.format(java.util.Locale.ROOT, "{\"messages\": %d, \"seconds\": %.6f}", count, took);
        } finally {
            consumer.shutdown();
        }
    }

    /** Send one at a time, 200 a second; the first second is not counted: the consumer comes up. */
    static String heard(DefaultMQProducer producer, String topic, byte[] body, double seconds,
        Map<String, Long> sentAt, AtomicInteger seen, Samples samples) throws Exception {
        int sent = 0;
        for (long limit = System.nanoTime() + 40_000_000_000L; seen.get() < 1; ) {
            if (System.nanoTime() > limit) throw new IllegalStateException("the listener hears nothing");
            require(producer.send(new Message(topic, "", "early", body)));
            sent++;
            Thread.sleep(50);
        }
        long began = System.nanoTime();
        long counted = began + 1_000_000_000L;
        long end = counted + (long) (seconds * 1e9);
        for (long now = began; now < end; now = System.nanoTime()) {
            String key = "k" + sent++;
            sentAt.put(key, now < counted ? -1 : now);
            require(producer.send(new Message(topic, "", key, body)));
            Thread.sleep(5);
        }
        for (long limit = System.nanoTime() + 20_000_000_000L; seen.get() < sent; Thread.sleep(5)) {
            if (System.nanoTime() > limit) throw new IllegalStateException(seen + " of " + sent + " arrived");
        }
        return report(samples.count, end - counted, List.of(samples));
    }

    static String report(long messages, long nanos, List<Samples> all) {
        int count = all.stream().mapToInt(one -> one.count).sum();
        if (count == 0) throw new IllegalStateException("nothing was done");
        long[] sorted = new long[count];
        int at = 0;
        for (Samples one : all) {
            System.arraycopy(one.nanos, 0, sorted, at, one.count);
            at += one.count;
        }
        Arrays.sort(sorted);
        return String.format(java.util.Locale.ROOT,
            "{\"messages\": %d, \"seconds\": %.6f, \"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f}",
            messages, nanos / 1e9, LoadLines.rank(sorted, 0.5), LoadLines.rank(sorted, 0.99), LoadLines.rank(sorted, 1));
    }
}
