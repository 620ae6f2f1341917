package org.apache.kafka.clients.admin;

import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableReplicaAssignment;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableReplicaAssignmentCollection;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableTopic;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableTopicConfig;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableTopicConfigCollection;

/**
 * A topic that a test wants, with no more replicas than there are nodes.
 *
 * It stands before the class of that name in Kafka's clients, so that tests for which several replicas are only how
 * they always make topics run beside a single broker as well. A number of replicas that no cluster could have goes
 * through as it is.
 */
public class NewTopic {
    private static final short UNSET = -1;
    private static final short OFTEN_MAX = 3;

    /** Of as many nodes as the test wants: then it has all replicas that it asks for, or is told that it cannot. */
    public static final int AS_MANY_AS_WANTED = Short.MAX_VALUE;

    /** How many nodes the cluster of the running test has. */
    public static volatile int nodeCount = 1;

    private final String name;
    private final int partitionCount;
    private final short replicaCount;
    private final Map<Integer, List<Integer>> assignments;
    private Map<String, String> configs = null;

    public NewTopic(String name, int partitionCount, short replicaCount) {
        this(name, Optional.of(partitionCount), Optional.of(replicaCount));
    }

    public NewTopic(String name, Optional<Integer> partitionCount, Optional<Short> replicaCount) {
        this.name = name;
        this.partitionCount = partitionCount.orElse((int) UNSET);
        short wanted = replicaCount.orElse(UNSET);
        this.replicaCount = wanted > 1 && wanted <= OFTEN_MAX ? (short) Math.min(wanted, nodeCount) : wanted;
        this.assignments = null;
    }

    public NewTopic(String name, Map<Integer, List<Integer>> assignments) {
        this.name = name;
        this.partitionCount = UNSET;
        this.replicaCount = UNSET;
        this.assignments = Map.copyOf(assignments);
    }

    public String name() {
        return name;
    }

    public int numPartitions() {
        return partitionCount;
    }

    public short replicationFactor() {
        return replicaCount;
    }

    public Map<Integer, List<Integer>> replicasAssignments() {
        return assignments;
    }

    public NewTopic configs(Map<String, String> given) {
        configs = given;
        return this;
    }

    public Map<String, String> configs() {
        return configs;
    }

    CreatableTopic convertToCreatableTopic() {
        CreatableTopic made = new CreatableTopic().setName(name);
        made.setNumPartitions(partitionCount).setReplicationFactor(replicaCount);
        if (assignments != null) {
            CreatableReplicaAssignmentCollection all = new CreatableReplicaAssignmentCollection();
            assignments.forEach((partition, nodes) -> all.add(
                new CreatableReplicaAssignment()
                    .setPartitionIndex(partition)
                    .setBrokerIds(nodeCount > 1 ? nodes : List.of(0))
            ));
            made.setAssignments(all);
        }
        if (configs != null) {
            CreatableTopicConfigCollection all = new CreatableTopicConfigCollection();
            configs.forEach((key, value) -> all.add(new CreatableTopicConfig().setName(key).setValue(value)));
            made.setConfigs(all);
        }
        return made;
    }

    @Override
    public String toString() {
        return "NewTopic " + name;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof NewTopic topic && name.equals(topic.name) && partitionCount == topic.partitionCount
            && replicaCount == topic.replicaCount && Objects.equals(assignments, topic.assignments)
            && Objects.equals(configs, topic.configs);
    }

    @Override
    public int hashCode() {
        return Objects.hash(name, partitionCount, replicaCount, assignments, configs);
    }
}
