import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentMemberSpec;
import org.apache.kafka.coordinator.group.streams.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.coordinator.group.streams.assignor.TopologyDescriber;

/**
 * Kafka's own assignor of tasks, for tests/interop/test_streams_assignors.py.
 *
 * <pre>
 * STANDBYS SUBTOPOLOGY=COUNT[s],... MEMBER/PROCESS/ACTIVE/STANDBY ...   one question a line
 * MEMBER/ACTIVE/STANDBY ...                                            its answer, sorted
 * </pre>
 *
 * Tasks are {@code SUBTOPOLOGY=0.1.2,...}; {@code -} stands for none, {@code s} for state.
 */
public final class StreamsAssignors {
    private record Shape(int count, boolean isStateful) { }

    private record Topology(TreeMap<String, Shape> shapes) implements TopologyDescriber {
        @Override
        public List<String> subtopologies() {
            return shapes.keySet().stream().toList();
        }

        @Override
        public int maxNumInputPartitions(String subtopologyId) {
            return shapes.get(subtopologyId).count();
        }

        @Override
        public boolean isStateful(String subtopologyId) {
            return shapes.get(subtopologyId).isStateful();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader reader = new BufferedReader(new InputStreamReader(System.in));
        for (String line = reader.readLine(); line != null; line = reader.readLine()) {
            System.out.println(answer(line.split(" ")));
        }
    }

    private static String answer(String[] words) {
        TreeMap<String, Shape> shapes = new TreeMap<>();
        for (String word : words[1].split(",")) {
            String[] parts = word.split("=");
            boolean isStateful = parts[1].endsWith("s");
            shapes.put(parts[0], new Shape(Integer.parseInt(parts[1].replace("s", "")), isStateful));
        }
        Map<String, AssignmentMemberSpec> members = new HashMap<>();
        for (String word : Arrays.copyOfRange(words, 2, words.length)) {
            String[] parts = word.split("/");
            members.put(parts[0], new AssignmentMemberSpec(
                Optional.empty(), Optional.empty(), tasks(parts[2]), tasks(parts[3]), Map.of(),
                parts[1], Map.of(), Map.of(), Map.of()));
        }
        GroupAssignment found = new StickyTaskAssignor().assign(
            new GroupSpecImpl(members, Map.of("num.standby.replicas", words[0])),
            new Topology(shapes));
        TreeMap<String, MemberAssignment> sorted = new TreeMap<>(found.members());
        return String.join(" ", sorted.entrySet().stream().map(entry -> entry.getKey()
            + "/" + shown(entry.getValue().activeTasks())
            + "/" + shown(entry.getValue().standbyTasks())).toList());
    }

    private static Map<String, Set<Integer>> tasks(String text) {
        Map<String, Set<Integer>> found = new LinkedHashMap<>();
        if (!text.equals("-")) {
            for (String word : text.split(",")) {
                String[] parts = word.split("=");
                Set<Integer> partitions = new HashSet<>();
                for (String number : parts[1].split("\\.")) {
                    partitions.add(Integer.parseInt(number));
                }
                found.put(parts[0], partitions);
            }
        }
        return found;
    }

    private static String shown(Map<String, Set<Integer>> tasks) {
        List<String> words = new TreeMap<>(tasks).entrySet().stream().map(entry -> entry.getKey()
            + "=" + String.join(".", new TreeSet<>(entry.getValue()).stream()
                .map(String::valueOf).toList())).toList();
        return words.isEmpty() ? "-" : String.join(",", words);
    }
}
