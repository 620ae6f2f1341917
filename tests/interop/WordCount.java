import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListStreamsGroupOffsetsSpec;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.StreamsGroupDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.Stores;

/**
 * A word count with {@code group.protocol=streams}, for tests/interop/test_streams.py.
 *
 * <p>Usage: {@code WordCount BOOTSTRAP APPLICATION GUARANTEE DIRECTORY STANDBYS}. Two instances
 * share the work, one leaves, the other one goes on with the counts of both. What it prints depends
 * on nothing that a broker chooses, so that two brokers that behave alike lead to the same.
 */
public final class WordCount {
    private static final int SECONDS_MAX = 90;
    private static final String LINES = "lines";
    private static final String COUNTS = "counts";

    private final String bootstrap;
    private final String application;
    private final String guarantee;
    private final Path directory;
    private final int standbys;
    private final Admin admin;
    private final Map<String, Long> counts = new TreeMap<>();
    private final KafkaConsumer<String, Long> reader;
    private final AtomicLong restored = new AtomicLong();

    private WordCount(String[] args) {
        bootstrap = args[0];
        application = args[1];
        guarantee = args[2];
        directory = Path.of(args[3]);
        standbys = Integer.parseInt(args[4]);
        admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        reader = new KafkaConsumer<>(
            Map.of("bootstrap.servers", bootstrap, "isolation.level", "read_committed"),
            new StringDeserializer(), new LongDeserializer());
    }

    public static void main(String[] args) throws Exception {
        new WordCount(args).run();
        System.exit(0);
    }

    private void run() throws Exception {
        admin.createTopics(List.of(
            new NewTopic(LINES, 2, (short) 1), new NewTopic(COUNTS, 1, (short) 1))).all().get();
        ConfigResource own = new ConfigResource(ConfigResource.Type.GROUP, application);
        admin.incrementalAlterConfigs(Map.of(own, List.of(new AlterConfigOp(
            new ConfigEntry("streams.num.standby.replicas", String.valueOf(standbys)),
            AlterConfigOp.OpType.SET)))).all().get();
        reader.assign(List.of(new TopicPartition(COUNTS, 0)));
        reader.seekToBeginning(reader.assignment());

        KafkaStreams one = start("one");
        say(8, "to be or not to be");
        await("the first counts", () -> counted("be", 16) && counted("not", 8));
        System.out.println("first: " + counts);
        System.out.println("one instance: " + tasks(one));

        KafkaStreams two = start("two");
        await("both have tasks", () -> count(one) == 2 && count(two) == 2);
        await("both have copies", () -> copies(one) == standbys && copies(two) == standbys);
        await("a group at rest", () -> state().equals("Stable"));
        System.out.println("two instances: " + described());
        await("both know where the tasks are", () -> hosts(one) == 2 && hosts(two) == 2);
        System.out.println("hosts: " + where(two));
        say(4, "be that as it may");
        await("the second counts", () -> counted("be", 20) && counted("may", 4));
        System.out.println("second: " + counts);

        one.close(CloseOptions.timeout(Duration.ofSeconds(30))
            .withGroupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP));
        await("the other one has all tasks", () -> count(two) == 4);
        await("a group at rest", () -> state().equals("Stable"));
        say(2, "so be it");
        await("the third counts", () -> counted("be", 22) && counted("so", 2));
        System.out.println("third: " + counts);
        System.out.println("restored some: " + (standbys > 0 || restored.get() > 0));
        System.out.println("one is left: " + described());
        System.out.println("topics: " + topics());
        two.close(Duration.ofSeconds(30));
        System.out.println("offsets: " + offsets());
        reader.close();
        admin.close();
    }


    private Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(LINES, Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with("words", Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("store"))
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .toStream()
            .to(COUNTS, Produced.with(Serdes.String(), Serdes.Long()));
        return builder.build();
    }

    private KafkaStreams start(String name) throws Exception {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("application.id", application);
        p.put("client.id", name);
        p.put("group.protocol", "streams");
        p.put("processing.guarantee", guarantee);
        p.put("application.server", name + ":" + (name.equals("one") ? 1 : 2));
        p.put("state.dir", Files.createDirectories(directory.resolve(name)).toString());
        p.put("commit.interval.ms", "100");
        p.put("statestore.cache.max.bytes", "0");
        p.put("consumer.auto.offset.reset", "earliest");
        KafkaStreams streams = new KafkaStreams(topology(), p);
        streams.setGlobalStateRestoreListener(new StateRestoreListener() {
            @Override
            public void onRestoreStart(TopicPartition p, String s, long first, long last) { }

            @Override
            public void onBatchRestored(TopicPartition p, String s, long last, long count) { }

            @Override
            public void onRestoreEnd(TopicPartition p, String s, long total) {
                restored.addAndGet(total);
            }
        });
        streams.start();
        await(name + " runs", () -> streams.state() == KafkaStreams.State.RUNNING);
        return streams;
    }

    private void say(int times, String line) throws Exception {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", bootstrap), new StringSerializer(),
                new StringSerializer())) {
            for (int i = 0; i < times; i++) {
                producer.send(new ProducerRecord<>(LINES, i % 2, null, line)).get();
            }
        }
    }

    private boolean counted(String word, long count) {
        for (ConsumerRecord<String, Long> record : reader.poll(Duration.ofMillis(100))) {
            counts.put(record.key(), record.value());
        }
        return counts.getOrDefault(word, 0L) == count;
    }

    private static Set<String> tasks(KafkaStreams streams) {
        return streams.metadataForLocalThreads().stream()
            .flatMap(thread -> thread.activeTasks().stream())
            .map(task -> task.taskId().toString())
            .collect(Collectors.toCollection(TreeSet::new));
    }

    private static int count(KafkaStreams streams) {
        return tasks(streams).size();
    }

    private static int copies(KafkaStreams streams) {
        return streams.metadataForLocalThreads().stream()
            .mapToInt(thread -> thread.standbyTasks().size()).sum();
    }

    /** How many instances are known with all the partitions that they have, and have copies of. */
    private int hosts(KafkaStreams streams) {
        return (int) streams.metadataForAllStreamsClients().stream()
            .filter(client -> client.topicPartitions().size() == 2
                && client.standbyTopicPartitions().size() == standbys).count();
    }

    private static String where(KafkaStreams streams) {
        return streams.metadataForAllStreamsClients().stream()
            .map(client -> client.host() + ":" + client.port() + " " + client.stateStoreNames()
                + " and copies of " + client.standbyTopicPartitions().size())
            .sorted().toList().toString();
    }

    private String state() {
        return group().groupState().toString();
    }

    private StreamsGroupDescription group() {
        try {
            return admin.describeStreamsGroups(List.of(application)).all().get().get(application);
        } catch (Exception e) {
            throw new RuntimeException(e);
        }
    }

    private String described() {
        StreamsGroupDescription group = group();
        List<Integer> sizes = new ArrayList<>();
        group.members().forEach(member -> sizes.add(member.assignment().activeTasks().stream()
            .mapToInt(tasks -> tasks.partitions().size()).sum()));
        sizes.sort(null);
        return group.groupState() + ", tasks " + sizes + ", topology " + group.topologyEpoch()
            + " " + group.subtopologies();
    }

    private String topics() throws Exception {
        TreeMap<String, String> found = new TreeMap<>();
        for (String name : admin.listTopics().names().get()) {
            if (!name.startsWith(application)) {
                continue;
            }
            ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, name);
            String configs = admin.describeConfigs(List.of(resource)).all().get().get(resource)
                .entries().stream()
                .filter(entry -> entry.source().toString().equals("DYNAMIC_TOPIC_CONFIG"))
                .map(entry -> entry.name() + "=" + entry.value()).sorted()
                .collect(Collectors.joining(","));
            int count = admin.describeTopics(List.of(name)).allTopicNames().get().get(name)
                .partitions().size();
            found.put(name, count + " " + configs);
        }
        return found.toString();
    }

    private String offsets() throws Exception {
        return admin.listStreamsGroupOffsets(
                Map.of(application, new ListStreamsGroupOffsetsSpec()))
            .partitionsToOffsetAndMetadata(application).get().keySet().stream()
            .map(TopicPartition::toString).sorted().toList().toString();
    }

    private static void await(String what, BooleanSupplier condition) throws Exception {
        long end = System.nanoTime() + Duration.ofSeconds(SECONDS_MAX).toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > end) {
                throw new IllegalStateException("waited in vain for " + what);
            }
            Thread.sleep(50);
        }
    }
}
