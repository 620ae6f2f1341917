import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;

/**
 * A Java member of a share group, for tests/interop/test_share_handover.py.
 *
 * <pre>
 * BOOTSTRAP GROUP TOPIC N KIND   takes N records, one poll after the other, and says of each
 *                           "partition offset deliveries"; KIND "all" accepts them, "some"
 *                           releases every fourth offset and rejects the one before it
 * </pre>
 */
public final class ShareConsumers {
    public static void main(String[] args) {
        Properties p = new Properties();
        p.put("bootstrap.servers", args[0]);
        p.put("group.id", args[1]);
        p.put("share.acknowledgement.mode", "explicit");
        p.put("max.poll.records", "7");
        p.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        p.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        int left = Integer.parseInt(args[3]);
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(p)) {
            consumer.subscribe(java.util.List.of(args[2]));
            while (left > 0) {
                for (ConsumerRecord<String, String> one : consumer.poll(Duration.ofSeconds(1))) {
                    long turn = one.offset() % 4;
                    int deliveries = one.deliveryCount().orElse((short) 0);
                    boolean isFirst = deliveries == 1 && args[4].equals("some");
                    consumer.acknowledge(one, turn == 3 && isFirst ? AcknowledgeType.RELEASE
                        : turn == 2 && isFirst ? AcknowledgeType.REJECT : AcknowledgeType.ACCEPT);
                    System.out.println(one.partition() + " " + one.offset() + " " + deliveries);
                    left--;
                }
                consumer.commitSync();
            }
        }
        System.exit(0);
    }
}
