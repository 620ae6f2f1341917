package org.apache.kafka.common.test;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import logstore.BrokerObjects;
import logstore.ListenerDoors;
import logstore.OurProcess;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.config.types.Password;

/**
 * Gives those of Kafka's tests that put a cluster together themselves, as Streams' do, one `logstore serve`.
 *
 * It stands before the class of that name in Kafka's jars, which starts real brokers in the JVM of the tests.
 */
public class KafkaClusterTestKit implements AutoCloseable {
    private static final String LISTENER = "EXTERNAL"; // as the real one calls what clients come to

    private final MockFaultHandler faults = new MockFaultHandler("no fault is ever told of");
    private final TestKitNodes nodes;
    private final OurProcess process;
    private final Map<Integer, BrokerServer> brokers = new TreeMap<>();
    private Admin admin;

    /** What a test says of its cluster. */
    public static class Builder {
        private final TestKitNodes nodes;
        private final Map<String, String> settings = new HashMap<>();

        public Builder(TestKitNodes nodes) {
            this.nodes = nodes;
        }

        public Builder setConfigProp(String key, Object value) {
            settings.put(key, text(value));
            return this;
        }

        /** What stands in a file of settings for an object of a test. */
        private static String text(Object value) {
            if (value instanceof Password password) {
                return password.value();
            }
            boolean isList = value instanceof List<?>;
            return isList ? ((List<?>) value).stream().map(String::valueOf).collect(Collectors.joining(","))
                : String.valueOf(value);
        }

        public KafkaClusterTestKit build() {
            return new KafkaClusterTestKit(nodes, settings);
        }
    }

    private KafkaClusterTestKit(TestKitNodes nodes, Map<String, String> given) {
        this.nodes = nodes;
        int count = nodes.brokerNodes().size();
        int first = nodes.brokerNodes().firstKey();
        Map<String, String> settings = new HashMap<>(given);
        settings.put("node.id", String.valueOf(first));
        settings.putAll(nodes.brokerNodes().get(first).propertyOverrides());
        if (settings.getOrDefault("listener.security.protocol.map", "").contains(LISTENER + ":")) {
            settings.putIfAbsent("listeners", LISTENER + "://localhost:" + ListenerDoors.freePort());
        }
        String release = BrokerObjects.release(nodes.bootstrapMetadata().metadataVersion());
        process = count == 1 ? new OurProcess(settings, release) : OurProcess.cluster(settings, release, count);
        nodes.brokerNodes().keySet().forEach(id -> brokers.put(id, broker(id, settings)));
    }

    private BrokerServer broker(int id, Map<String, String> settings) {
        BrokerObjects objects = new BrokerObjects(process, this::admin, BrokerObjects.config(settings));
        if (nodes.brokerNodes().size() == 1) {
            objects.stubLife(process::start, process::stop);
        } else {
            objects.stubPorts(listener -> process.nodePort(id));
            objects.stubLife(() -> process.startNode(id), () -> process.stopNode(id));
        }
        return objects.broker();
    }

    public void format() {
    }

    public void startup() {
        NewTopic.nodeCount = NewTopic.AS_MANY_AS_WANTED;
        process.start();
    }

    public void waitForReadyBrokers() {
    }

    public Admin admin() {
        if (admin == null) {
            admin = Admin.create(Map.of("bootstrap.servers", bootstrapServers()));
        }
        return admin;
    }

    public String bootstrapServers() {
        return process.bootstrap();
    }

    public Map<Integer, BrokerServer> brokers() {
        return brokers;
    }

    public Map<Integer, ControllerServer> controllers() {
        throw new UnsupportedOperationException("there is no controller to look into");
    }

    public TestKitNodes nodes() {
        return nodes;
    }

    public MockFaultHandler fatalFaultHandler() {
        return faults;
    }

    public MockFaultHandler nonFatalFaultHandler() {
        return faults;
    }

    @Override
    public void close() {
        if (admin != null) {
            admin.close(Duration.ZERO);
        }
        process.stop();
    }
}
