import java.util.ArrayList;
import java.util.List;
import java.util.Scanner;
import java.util.stream.Collectors;
import org.apache.kafka.coordinator.share.PersisterStateBatchCombiner;
import org.apache.kafka.server.share.persister.PersisterStateBatch;

/**
 * Asks the real combiner of state batches: a line is a question, and is answered with a line.
 *
 * "start|first,last,state,count ...|first,last,state,count ..." are known and changed batches.
 */
public final class StateBatches {
    public static void main(String[] args) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] parts = lines.nextLine().split("\\|", -1);
            List<PersisterStateBatch> left = new PersisterStateBatchCombiner(
                batches(parts[1]), batches(parts[2]), Long.parseLong(parts[0])).combineStateBatches();
            System.out.println(left.stream().map(one -> one.firstOffset() + "," + one.lastOffset()
                + "," + one.deliveryState() + "," + one.deliveryCount())
                .collect(Collectors.joining(" ")));
        }
    }

    private static List<PersisterStateBatch> batches(String text) {
        List<PersisterStateBatch> found = new ArrayList<>();
        for (String one : text.isEmpty() ? new String[0] : text.split(" ")) {
            String[] n = one.split(",");
            found.add(new PersisterStateBatch(Long.parseLong(n[0]), Long.parseLong(n[1]),
                Byte.parseByte(n[2]), Short.parseShort(n[3])));
        }
        return found;
    }
}
