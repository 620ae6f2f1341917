import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;

/**
 * Java's share consumers, for tests/interop/test_share_consumers.py: BOOTSTRAP PREFIX, and prints
 * scenario by scenario what they saw. Nothing that is printed depends on time or chance.
 */
public final class ShareScenarios {
    private static final long SECONDS_MAX = 40;
    private static String bootstrap;
    private static String topic;
    private static String group;
    private static Admin admin;
    private static KafkaProducer<String, String> producer;

    private interface Scenario {
        void run() throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        producer = new KafkaProducer<>(Map.of("bootstrap.servers", bootstrap, "linger.ms", 500,
            "batch.size", 1 << 20), new StringSerializer(), new StringSerializer());
        Map<String, Scenario> scenarios = new LinkedHashMap<>();
        scenarios.put("implicit", ShareScenarios::implicit);
        scenarios.put("explicit", ShareScenarios::explicit);
        scenarios.put("limit", ShareScenarios::limit);
        scenarios.put("timeout", ShareScenarios::timeout);
        scenarios.put("renew", ShareScenarios::renew);
        scenarios.put("closed", ShareScenarios::closed);
        scenarios.put("mode", ShareScenarios::recordLimit);
        scenarios.put("committed", ShareScenarios::committed);
        scenarios.put("deleted", ShareScenarios::deleted);
        scenarios.put("shared", ShareScenarios::shared);
        scenarios.put("latest", ShareScenarios::latest);
        scenarios.put("errors", ShareScenarios::errors);
        Set<String> chosen = arguments.length > 2 ? Set.of(arguments[2].split(",")) : scenarios.keySet();
        for (String name : scenarios.keySet()) {
            if (!chosen.contains(name)) continue;
            System.out.println("== " + name);
            topic = arguments[1] + name;
            group = "group-" + topic;
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
            configure("share.auto.offset.reset", "earliest", "share.record.lock.duration.ms", "60000");
            scenarios.get(name).run();
        }
        System.exit(0);
    }

    private static void implicit() throws Exception {
        produce(0, 10);
        try (KafkaShareConsumer<String, String> one = consumer()) {
            System.out.println(values(poll(one, 10)));
            produce(10, 13);
            System.out.println(values(poll(one, 3)));
        }
        produce(13, 15);
        try (KafkaShareConsumer<String, String> two = consumer()) {
            System.out.println(values(poll(two, 2)));
        }
    }

    private static void explicit() throws Exception {
        produce(0, 12);
        try (KafkaShareConsumer<String, String> one = consumer("share.acknowledgement.mode", "explicit")) {
            for (ConsumerRecord<String, String> record : poll(one, 12)) {
                int number = Integer.parseInt(record.value());
                one.acknowledge(record, switch (number % 4) {
                    case 1 -> AcknowledgeType.RELEASE;
                    case 3 -> AcknowledgeType.REJECT;
                    default -> AcknowledgeType.ACCEPT;
                });
            }
            System.out.println(outcome(one.commitSync()));
            List<ConsumerRecord<String, String>> again = poll(one, 3);
            System.out.println(values(again));
            for (ConsumerRecord<String, String> record : again) one.acknowledge(record);
            try {
                one.acknowledge(again.get(0));
                one.acknowledge(new ConsumerRecord<>(topic, 0, 3, null, null));
            } catch (IllegalStateException error) {
                System.out.println(error.getClass().getSimpleName());
            }
            System.out.println(outcome(one.commitSync()));
            produce(12, 13);
            System.out.println(values(poll(one, 1)));
        }
    }

    private static void limit() throws Exception {
        produce(0, 8);
        List<String> told = new ArrayList<>();
        try (KafkaShareConsumer<String, String> one = consumer("share.acknowledgement.mode", "explicit")) {
            Set<String> gone = new TreeSet<>();
            while (gone.size() < 8) {
                List<ConsumerRecord<String, String>> some = poll(one, 1);
                told.add(values(some));
                for (ConsumerRecord<String, String> record : some) {
                    if (record.deliveryCount().get() == 5) gone.add(record.value());
                    one.acknowledge(record, AcknowledgeType.RELEASE);
                }
                one.commitSync();
            }
            produce(8, 9);
            told.add(values(poll(one, 1)));
        }
        told.forEach(System.out::println);
    }

    private static void timeout() throws Exception {
        configure("share.record.lock.duration.ms", "2000");
        produce(0, 5);
        try (KafkaShareConsumer<String, String> one = consumer("share.acknowledgement.mode", "explicit");
             KafkaShareConsumer<String, String> two = consumer("share.acknowledgement.mode", "explicit")) {
            List<ConsumerRecord<String, String>> had = poll(one, 5);
            System.out.println(values(had) + " locked for " + one.acquisitionLockTimeoutMs().get());
            List<ConsumerRecord<String, String>> again = poll(two, 5);
            System.out.println(again.stream()  // on a slow machine it times out once more
                .map(record -> record.value() + (record.deliveryCount().get() > 1 ? " again" : "")).toList());
            for (ConsumerRecord<String, String> record : had) one.acknowledge(record);
            System.out.println(outcome(one.commitSync()));
            for (ConsumerRecord<String, String> record : again) two.acknowledge(record);
            two.commitSync();
        }
    }

    private static void renew() throws Exception {
        configure("share.record.lock.duration.ms", "5000");
        produce(0, 3);
        try (KafkaShareConsumer<String, String> one = consumer("share.acknowledgement.mode", "explicit");
             KafkaShareConsumer<String, String> two = consumer("share.acknowledgement.mode", "explicit")) {
            List<ConsumerRecord<String, String>> had = poll(one, 3);
            long start = System.nanoTime();
            int others = 0;
            while (System.nanoTime() - start < 7_500_000_000L) {
                for (ConsumerRecord<String, String> record : had) one.acknowledge(record, AcknowledgeType.RENEW);
                Map<TopicIdPartition, ?> renewed = one.commitSync();
                if (!outcome((Map) renewed).equals("{0=fine}")) System.out.println(outcome((Map) renewed));
                List<ConsumerRecord<String, String>> left = new ArrayList<>();
                one.poll(Duration.ofMillis(100)).forEach(left::add);
                if (!left.isEmpty()) had = left;
                others += two.poll(Duration.ofMillis(200)).count();
            }
            System.out.println("others had " + others);
            for (ConsumerRecord<String, String> record : had) one.acknowledge(record);
            System.out.println(values(had) + outcome(one.commitSync()));
        }
    }

    private static void closed() throws Exception {
        produce(0, 6);
        KafkaShareConsumer<String, String> one = consumer("share.acknowledgement.mode", "explicit");
        List<ConsumerRecord<String, String>> had = poll(one, 6);
        System.out.println(values(had));
        one.acknowledge(had.get(0));
        one.acknowledge(had.get(1), AcknowledgeType.REJECT);
        one.close();
        try (KafkaShareConsumer<String, String> two = consumer()) {
            System.out.println(values(poll(two, 4)));
        }
    }

    private static void recordLimit() throws Exception {
        produce(0, 10);
        String[] settings = {"share.acquire.mode", "record_limit", "max.poll.records", "3"};
        try (KafkaShareConsumer<String, String> one = consumer(settings);
             KafkaShareConsumer<String, String> two = consumer(settings)) {
            int count = 0;
            List<String> all = new ArrayList<>();
            while (count < 10) {
                for (KafkaShareConsumer<String, String> some : List.of(one, two)) {
                    ConsumerRecords<String, String> records = some.poll(Duration.ofMillis(500));
                    if (records.count() > 3) System.out.println("too many: " + records.count());
                    for (ConsumerRecord<String, String> record : records) all.add(record.value());
                    count += records.count();
                }
            }
            System.out.println(new TreeSet<>(all).size() + " of " + all.size());
        }
    }

    private static void committed() throws Exception {
        configure("share.isolation.level", "read_committed");
        KafkaProducer<String, String> transactional = new KafkaProducer<>(Map.of(
            "bootstrap.servers", bootstrap, "transactional.id", topic),
            new StringSerializer(), new StringSerializer());
        transactional.initTransactions();
        for (int round = 0; round < 4; round++) {
            transactional.beginTransaction();
            for (int i = 0; i < 3; i++) {
                transactional.send(new ProducerRecord<>(topic, 0, null, round + (round % 2 == 0 ? "c" : "a") + i));
            }
            transactional.flush();
            if (round % 2 == 0) transactional.commitTransaction();
            else transactional.abortTransaction();
        }
        produce(0, 2);
        try (KafkaShareConsumer<String, String> one = consumer()) {
            System.out.println(values(poll(one, 8)));
        }
        produce(2, 3);
        try (KafkaShareConsumer<String, String> two = consumer()) {
            System.out.println(values(poll(two, 1)));
        }
        transactional.close();
    }

    private static void deleted() throws Exception {
        produce(0, 10);
        try (KafkaShareConsumer<String, String> one = consumer("share.acknowledgement.mode", "explicit")) {
            List<ConsumerRecord<String, String>> had = poll(one, 10);
            admin.deleteRecords(Map.of(new TopicPartition(topic, 0), RecordsToDelete.beforeOffset(4))).all().get();
            for (ConsumerRecord<String, String> record : had) one.acknowledge(record, AcknowledgeType.RELEASE);
            System.out.println(outcome(one.commitSync()));
            List<ConsumerRecord<String, String>> again = poll(one, 6);
            System.out.println(values(again));
            for (ConsumerRecord<String, String> record : again) one.acknowledge(record);
            System.out.println(outcome(one.commitSync()));
        }
    }

    private static void shared() throws Exception {
        for (int i = 0; i < 300; i += 10) produce(i, i + 10);
        ConcurrentMap<String, Integer> seen = new ConcurrentHashMap<>();
        AtomicBoolean isOver = new AtomicBoolean();
        ExecutorService threads = Executors.newFixedThreadPool(3);
        List<Future<?>> running = new ArrayList<>();
        for (int member = 0; member < 3; member++) {
            running.add(threads.submit(() -> {
                try (KafkaShareConsumer<String, String> some = consumer("max.poll.records", "20")) {
                    while (!isOver.get()) {
                        for (ConsumerRecord<String, String> record : some.poll(Duration.ofMillis(100))) {
                            seen.merge(record.value(), 1, Integer::sum);
                        }
                    }
                }
            }));
        }
        long deadline = System.nanoTime() + SECONDS_MAX * 1_000_000_000L;
        while (seen.size() < 300 && System.nanoTime() < deadline) Thread.sleep(50);
        isOver.set(true);
        for (Future<?> one : running) one.get();
        System.out.println(seen.size() + " records, at most " + Collections.max(seen.values()) + " times");
    }

    private static void latest() throws Exception {
        configure("share.auto.offset.reset", "latest");
        produce(0, 5);
        try (KafkaShareConsumer<String, String> one = consumer()) {
            one.poll(Duration.ofMillis(100));
            while (admin.describeShareGroups(List.of(group)).all().get().get(group).members().stream()
                .allMatch(member -> member.assignment().topicPartitions().isEmpty())) {
                one.poll(Duration.ofMillis(100));
            }
            for (int i = 0; i < 10; i++) one.poll(Duration.ofMillis(200));
            produce(5, 8);
            System.out.println(values(poll(one, 3)));
        }
    }

    private static void errors() throws Exception {
        produce(0, 2);
        KafkaShareConsumer<String, String> one = consumer("share.acknowledgement.mode", "explicit");
        List<String> told = Collections.synchronizedList(new ArrayList<>());
        one.setAcknowledgementCommitCallback((offsets, error) ->
            offsets.values().forEach(some -> told.add(new TreeSet<>(some) + " " + (error == null ? "fine" : error.getClass().getSimpleName()))));
        List<ConsumerRecord<String, String>> had = poll(one, 2);
        one.acknowledge(had.get(0));
        one.acknowledge(had.get(1), AcknowledgeType.RELEASE);
        one.commitAsync();
        System.out.println(values(poll(one, 1)));
        System.out.println(told);
        one.close();
    }

    private static void configure(String... settings) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        for (int i = 0; i < settings.length; i += 2) {
            changes.add(new AlterConfigOp(new ConfigEntry(settings[i], settings[i + 1]), AlterConfigOp.OpType.SET));
        }
        admin.incrementalAlterConfigs(
            Map.of(new ConfigResource(ConfigResource.Type.GROUP, group), changes)).all().get();
    }

    private static KafkaShareConsumer<String, String> consumer(String... settings) {
        Map<String, Object> all = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "group.id", group));
        for (int i = 0; i < settings.length; i += 2) all.put(settings[i], settings[i + 1]);
        KafkaShareConsumer<String, String> made =
            new KafkaShareConsumer<>(all, new StringDeserializer(), new StringDeserializer());
        made.subscribe(List.of(topic));
        return made;
    }

    private static void produce(int first, int end) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int i = first; i < end; i++) sent.add(producer.send(new ProducerRecord<>(topic, 0, null, "" + i)));
        producer.flush();
        for (Future<RecordMetadata> one : sent) one.get();
    }

    /** One poll that gives something, or as many as it takes to have so many. */
    private static List<ConsumerRecord<String, String>> poll(KafkaShareConsumer<String, String> from, int count) {
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        long deadline = System.nanoTime() + SECONDS_MAX * 1_000_000_000L;
        while (found.size() < count && System.nanoTime() < deadline) {
            from.poll(Duration.ofMillis(200)).forEach(found::add);
        }
        return found;
    }

    private static String values(List<ConsumerRecord<String, String>> records) {
        return records.stream()
            .map(record -> record.value() + "*" + record.deliveryCount().map(String::valueOf).orElse("?"))
            .collect(Collectors.joining(" "));
    }

    private static String outcome(Map<TopicIdPartition, Optional<org.apache.kafka.common.KafkaException>> told) {
        Map<Integer, String> found = new TreeMap<>();
        told.forEach((partition, error) -> found.put(partition.partition(),
            error.map(one -> one.getClass().getSimpleName()).orElse("fine")));
        return found.toString();
    }
}
