import java.io.InputStream;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.server.log.remote.metadata.storage.serialization.RemoteLogMetadataSerde;
import org.apache.kafka.server.log.remote.storage.LocalTieredStorage;
import org.apache.kafka.server.log.remote.storage.LocalTieredStorageTraverser;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentFileset;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;

/**
 * Reads a directory as LocalTieredStorage does: every partition, segment and record it finds, then
 * what it hands out for each segment whose metadata, as Kafka serializes them, follow as hex.
 */
public class ReadStored {
    public static void main(String[] arguments) throws Exception {
        LocalTieredStorage storage = new LocalTieredStorage();
        storage.configure(Map.of("dir", arguments[0], LocalTieredStorage.BROKER_ID, 1));
        storage.traverse(new LocalTieredStorageTraverser() {
            @Override
            public void visitTopicIdPartition(TopicIdPartition partition) {
                System.out.println("partition " + partition);
            }

            @Override
            public void visitSegment(RemoteLogSegmentFileset files) {
                try {
                    List<Record> records = files.getRecords();
                    for (Record record : records) System.out.println("record " + record.offset());
                } catch (Exception error) {
                    throw new RuntimeException(error);
                }
            }
        });
        for (int i = 1; i < arguments.length; i++) {
            byte[] value = HexFormat.of().parseHex(arguments[i]);
            RemoteLogSegmentMetadata metadata =
                (RemoteLogSegmentMetadata) new RemoteLogMetadataSerde().deserialize(value);
            System.out.print("segment " + metadata.startOffset() + " " + metadata.endOffset()
                + " " + metadata.state() + " " + metadata.segmentLeaderEpochs()
                + " " + size(storage.fetchLogSegment(metadata, 0)));
            for (IndexType type : IndexType.values()) {
                boolean isAbsent = type == IndexType.TRANSACTION && metadata.isTxnIdxEmpty();
                System.out.print(" " + (isAbsent ? 0 : size(storage.fetchIndex(metadata, type))));
            }
            System.out.println();
        }
    }

    private static int size(InputStream stream) throws Exception {
        try (stream) {
            return stream.readAllBytes().length;
        }
    }
}
