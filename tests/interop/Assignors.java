import java.util.*;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.*;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.*;

/**
 * Asks the real assignors: a line is a question, and is answered with a line.
 *
 * "uniform HOMOGENEOUS id=count,... member/instance/id,id/id=0.1,id=2 member/..." with "-" for
 * nothing. Of share groups ("simple") every fourth partition may not be assigned. The answer has "member/id=0.1,id=2", members and topics sorted.
 */
public final class Assignors {
    public static void main(String[] args) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) System.out.println(answer(lines.nextLine().split(" ")));
    }

    private static String answer(String[] words) {
        Map<Uuid, Integer> counts = new HashMap<>();
        for (String one : parts(words[2], ",")) {
            counts.put(Uuid.fromString(one.split("=")[0]), Integer.parseInt(one.split("=")[1]));
        }
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        for (int i = 3; i < words.length; i++) {
            String[] member = words[i].split("/");
            Set<Uuid> topics = new LinkedHashSet<>();
            for (String one : parts(member[2], ",")) topics.add(Uuid.fromString(one));
            Map<Uuid, Set<Integer>> had = new HashMap<>();
            for (String one : parts(member[3], ",")) {
                Uuid topic = Uuid.fromString(one.split("=")[0]);
                String listed = one.substring(one.indexOf('=') + 1);
                List<Integer> partitions = Arrays.stream(parts(listed, "\\."))
                    .map(Integer::parseInt).toList();
                had.put(topic, new HashSet<>(partitions));
                for (int partition : partitions) {
                    owners.computeIfAbsent(topic, __ -> new HashMap<>()).put(partition, member[0]);
                }
            }
            Optional<String> instance = member[1].equals("-") ? Optional.empty() : Optional.of(member[1]);
            members.put(member[0], new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), instance, topics, new Assignment(had)));
        }
        Map<String, PartitionAssignor> assignors = Map.of(
            "uniform", new UniformAssignor(), "range", new RangeAssignor(), "simple", new SimpleAssignor());
        PartitionAssignor assignor = assignors.get(words[0]);
        Map<Uuid, Set<Integer>> assignable = new HashMap<>();
        counts.forEach((topic, count) -> assignable.put(topic,
            IntStream.range(0, count).filter(it -> it % 4 != 3).boxed().collect(Collectors.toSet())));
        GroupAssignment found = assignor.assign(
            new GroupSpecImpl(members, SubscriptionType.valueOf(words[1]), owners,
                words[0].equals("simple") ? Optional.of(assignable) : Optional.empty()),
            new SubscribedTopicDescriber() {
                @Override
                public int numPartitions(Uuid topic) {
                    return counts.getOrDefault(topic, -1);
                }

                @Override
                public Set<String> racksForPartition(Uuid topic, int partition) {
                    return Set.of();
                }
            });
        return new TreeMap<>(found.members()).entrySet().stream()
            .map(entry -> entry.getKey() + "/" + shown(entry.getValue().partitions()))
            .collect(Collectors.joining(" "));
    }

    private static String shown(Map<Uuid, Set<Integer>> partitions) {
        return partitions.entrySet().stream()
            .filter(entry -> !entry.getValue().isEmpty())
            .map(entry -> entry.getKey() + "=" + entry.getValue().stream().sorted()
                .map(String::valueOf).collect(Collectors.joining(".")))
            .sorted().collect(Collectors.joining(","));
    }

    private static String[] parts(String text, String separator) {
        return text.equals("-") || text.isEmpty() ? new String[0] : text.split(separator);
    }
}
