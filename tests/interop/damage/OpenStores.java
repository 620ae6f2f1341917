import java.io.File;
import java.lang.reflect.Constructor;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/**
 * Opens stores as a broker does, reads every message of every queue, and stops cleanly; many at a
 * time, because a start and a stop mostly wait. Each line of stdin names one: its directory and its
 * settings, with tabs between. Prints "== directory", then a line for each message that is handed
 * out (topic, queue, offset, size and digest), or "!! why".
 */
public final class OpenStores {
    private static final int AT_ONCE = 20;
    /** Some damage makes a start wait for ever for what cannot be dispatched. */
    private static final int START_SECONDS_MAX = 60;

    public static void main(String[] arguments) throws Exception {
        List<Future<List<String>>> found = new ArrayList<>();
        List<String> stores = new ArrayList<>();
        ExecutorService pool = Executors.newFixedThreadPool(AT_ONCE);
        String text = new String(System.in.readAllBytes(), StandardCharsets.UTF_8);
        for (String line : text.split("\n")) {
            String[] words = line.split("\t");
            stores.add(words[0]);
            found.add(pool.submit(() -> bounded(() -> lead(words))));
        }
        StringBuilder told = new StringBuilder();
        for (int i = 0; i < stores.size(); i++) {
            told.append("== ").append(stores.get(i)).append('\n');
            for (String line : found.get(i).get()) {
                told.append(line).append('\n');
            }
        }
        System.out.write(told.toString().getBytes(StandardCharsets.UTF_8));
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static List<String> bounded(Callable<List<String>> task) throws Exception {
        FutureTask<List<String>> wanted = new FutureTask<>(task);
        new Thread(wanted).start();
        try {
            return wanted.get(START_SECONDS_MAX, TimeUnit.SECONDS);
        } catch (TimeoutException over) {
            return List.of("!! waits for ever");
        }
    }

    private static List<String> lead(String[] words) {
        try {
            DefaultMessageStore store = made(words);
            if (!store.load()) {
                return List.of("!! not loaded");
            }
            store.start();
            while (store.dispatchBehindBytes() > 0) {
                Thread.sleep(10);
            }
            List<String> read = messages(store);
            store.shutdown();
            return read;
        } catch (Throwable error) {
            return List.of("!! " + (error.getCause() == null ? error : error.getCause()));
        }
    }

    /** The table of topics is there for releases whose queues have kinds. */
    private static DefaultMessageStore made(String[] words) throws Exception {
        Properties settings = new Properties();
        for (String word : Arrays.asList(words).subList(1, words.length)) {
            int at = word.indexOf('=');
            settings.setProperty(word.substring(0, at), word.substring(at + 1));
        }
        BrokerConfig broker = new BrokerConfig();
        MessageStoreConfig config = new MessageStoreConfig();
        MixAll.properties2Object(settings, broker);
        MixAll.properties2Object(settings, config);
        config.setStorePathRootDir(words[0]);
        config.setStorePathCommitLog(words[0] + File.separator + "commitlog");
        config.setHaListenPort(0);
        config.setDiskMaxUsedSpaceRatio(99);
        Constructor<?> made = DefaultMessageStore.class.getConstructors()[0];
        Object[] given = new Object[made.getParameterCount()];
        given[0] = config;
        given[1] = new BrokerStatsManager("c", false);
        given[3] = broker;
        if (given.length > 4) {
            given[4] = topics(Path.of(words[0], "config", "topics.json"));
        }
        return (DefaultMessageStore) made.newInstance(given);
    }

    private static ConcurrentMap<String, TopicConfig> topics(Path file) throws Exception {
        if (!Files.exists(file)) {
            return new ConcurrentHashMap<>();
        }
        String name = "org.apache.rocketmq.remoting.protocol.body.TopicConfigSerializeWrapper";
        Class<?> wrapper = Class.forName(name);
        Object read = wrapper.getMethod("fromJson", String.class, Class.class)
            .invoke(null, Files.readString(file), wrapper);
        @SuppressWarnings("unchecked")
        ConcurrentMap<String, TopicConfig> table =
            (ConcurrentMap<String, TopicConfig>) wrapper.getMethod("getTopicConfigTable").invoke(read);
        return table;
    }

    private static List<String> messages(DefaultMessageStore store) throws Exception {
        List<String> found = new ArrayList<>();
        Map<String, ?> table = (Map<String, ?>)
            DefaultMessageStore.class.getMethod("getConsumeQueueTable").invoke(store);
        for (String topic : table.keySet()) {
            for (Object queue : ((Map<?, ?>) table.get(topic)).keySet()) {
                read(store, topic, (Integer) queue, found);
            }
        }
        found.sort(null);
        return found;
    }

    /** One by one: a broker leaves out the rest of a file behind a unit that leads nowhere. */
    private static void read(DefaultMessageStore store, String topic, int queue, List<String> found)
        throws Exception {
        long end = store.getMaxOffsetInQueue(topic, queue);
        for (long at = store.getMinOffsetInQueue(topic, queue); at < end; at++) {
            GetMessageResult result = store.getMessage("g", topic, queue, at, 1, null);
            if (result == null) {
                return;
            }
            for (ByteBuffer buffer : result.getMessageBufferList()) {
                found.add(String.join(" ", topic, String.valueOf(queue), String.valueOf(at),
                    String.valueOf(buffer.remaining()), digest(buffer)));
            }
            result.release();
        }
    }

    private static String digest(ByteBuffer buffer) throws Exception {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        digest.update(buffer);
        StringBuilder found = new StringBuilder();
        for (byte one : digest.digest()) {
            found.append(String.format("%02x", one));
        }
        return found.toString();
    }
}
