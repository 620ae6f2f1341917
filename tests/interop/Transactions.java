import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * A Java producer of transactions, for tests/interop/test_transactions.py.
 *
 * <pre>
 * run BOOTSTRAP ID TOPIC c:2 a:3 ...   commits two records, aborts three, ...
 * fence BOOTSTRAP ID TOPIC             prints the error of a producer that another one shut out
 * copy BOOTSTRAP ID TOPIC OUT GROUP N  copies N records, three a transaction, every second aborted
 * offsets BOOTSTRAP ID TOPIC N         commits N records at once, prints what it is told of offsets
 * hang BOOTSTRAP ID TOPIC N            leaves a transaction of N records open
 * </pre>
 */
public final class Transactions {
    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "run" -> run(args);
            case "fence" -> fence(args);
            case "copy" -> copy(args);
            case "offsets" -> offsets(args);
            case "hang" -> hang(args);
            default -> throw new IllegalArgumentException(args[0]);
        }
        System.exit(0);
    }

    private static KafkaProducer<String, String> producer(String bootstrap, String id) {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("transactional.id", id);
        p.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        p.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        return new KafkaProducer<>(p);
    }

    private static void run(String[] args) throws Exception {
        try (KafkaProducer<String, String> producer = producer(args[1], args[2])) {
            producer.initTransactions();
            for (int i = 4; i < args.length; i++) {
                int count = Integer.parseInt(args[i].substring(2));
                producer.beginTransaction();
                for (int n = 0; n < count; n++) {
                    producer.send(new ProducerRecord<>(args[3], 0, "k", (i - 4) + "-" + n)).get();
                }
                if (args[i].startsWith("c")) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
        }
    }

    private static void fence(String[] args) throws Exception {
        KafkaProducer<String, String> old = producer(args[1], args[2]);
        old.initTransactions();
        old.beginTransaction();
        old.send(new ProducerRecord<>(args[3], 0, "k", "lost")).get();
        try (KafkaProducer<String, String> fresh = producer(args[1], args[2])) {
            fresh.initTransactions();
            try {
                old.send(new ProducerRecord<>(args[3], 0, "k", "late")).get();
                old.commitTransaction();
                System.out.println("not fenced");
            } catch (Exception error) {
                Throwable cause = error.getCause() == null ? error : error.getCause();
                System.out.println(cause.getClass().getSimpleName());
            }
            fresh.beginTransaction();
            fresh.send(new ProducerRecord<>(args[3], 0, "k", "new")).get();
            fresh.commitTransaction();
        }
    }

    private static void offsets(String[] args) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<String, String> producer = producer(args[1], args[2])) {
            producer.initTransactions();
            producer.beginTransaction();
            for (int n = 0; n < Integer.parseInt(args[4]); n++) {
                sent.add(producer.send(new ProducerRecord<>(args[3], 0, "k", "v-" + n)));
            }
            producer.commitTransaction();
        }
        for (Future<RecordMetadata> one : sent) {
            System.out.print(one.get().hasOffset() ? one.get().offset() + " " : "unknown ");
        }
        System.out.println();
    }

    private static void hang(String[] args) throws Exception {
        KafkaProducer<String, String> producer = producer(args[1], args[2]);
        producer.initTransactions();
        producer.beginTransaction();
        for (int n = 0; n < Integer.parseInt(args[4]); n++) {
            producer.send(new ProducerRecord<>(args[3], 0, "k", "open-" + n)).get();
        }
        System.out.println("open");
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void copy(String[] args) throws Exception {
        int total = Integer.parseInt(args[6]);
        Properties p = new Properties();
        p.put("bootstrap.servers", args[1]);
        p.put("group.id", args[5]);
        p.put("enable.auto.commit", "false");
        p.put("auto.offset.reset", "earliest");
        p.put("isolation.level", "read_committed");
        p.put("max.poll.records", "3");
        p.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        p.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        TopicPartition source = new TopicPartition(args[3], 0);
        int copied = 0;
        int number = 0;
        try (KafkaProducer<String, String> producer = producer(args[1], args[2]);
                KafkaConsumer<String, String> consumer = new KafkaConsumer<>(p)) {
            producer.initTransactions();
            consumer.subscribe(List.of(args[3]));
            while (copied < total) {
                List<ConsumerRecord<String, String>> found = new ArrayList<>();
                consumer.poll(Duration.ofMillis(500)).records(source).forEach(found::add);
                if (found.isEmpty()) {
                    continue;
                }
                long next = found.get(found.size() - 1).offset() + 1;
                producer.beginTransaction();
                for (ConsumerRecord<String, String> one : found) {
                    producer.send(new ProducerRecord<>(args[4], 0, one.key(), one.value()));
                }
                producer.sendOffsetsToTransaction(
                        Map.of(source, new OffsetAndMetadata(next)), consumer.groupMetadata());
                if (number++ % 2 == 0) {
                    producer.abortTransaction();
                    consumer.seek(source, found.get(0).offset());
                } else {
                    producer.commitTransaction();
                    copied += found.size();
                }
            }
            OffsetAndMetadata end = consumer.committed(java.util.Set.of(source)).get(source);
            System.out.println(copied + " " + end.offset());
        }
    }
}
