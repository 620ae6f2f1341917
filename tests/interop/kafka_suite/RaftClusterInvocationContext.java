package org.apache.kafka.common.test.junit;

import java.time.Duration;
import java.util.Collection;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import logstore.BrokerObjects;
import logstore.OurProcess;
import logstore.PlainLogins;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.apache.kafka.test.TestUtils;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.BeforeTestExecutionCallback;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;

/**
 * Gives Kafka's own tests a cluster that is one `logstore serve`.
 *
 * It stands before the class of that name in Kafka's jars, which starts real brokers in the JVM of the
 * tests. It has as many nodes as a test wants brokers; of those as objects there are none to look into.
 */
public class RaftClusterInvocationContext implements TestTemplateInvocationContext {
    private final String name;
    private final ClusterConfig config;

    public RaftClusterInvocationContext(String name, ClusterConfig config, boolean isCombined) {
        this.name = name;
        this.config = config;
    }

    @Override
    public String getDisplayName(int invocation) {
        return name + " [" + invocation + "]";
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
        Ours ours = new Ours(config);
        BeforeTestExecutionCallback before = context -> {
            if (config.isAutoStart()) {
                ours.start();
            }
        };
        AfterTestExecutionCallback after = context -> ours.stop();
        return List.of(before, after, new ClusterInstanceParameterResolver(ours));
    }

    private static final class Ours implements ClusterInstance {
        private static final int NODE = 0;
        private static final int CONTROLLER = 3000;

        private final ClusterConfig config;
        private final OurProcess process;
        private final Map<String, String> settings = new HashMap<>(Map.of("node.id", String.valueOf(NODE)));
        private final Set<Integer> nodeIds;
        private Admin admin;
        private final Map<Integer, BrokerObjects> objects = new HashMap<>();
        private boolean isStarted = false;
        private boolean isStopped = false;

        Ours(ClusterConfig config) {
            this.config = config;
            settings.putAll(config.serverProperties());
            for (int server : List.of(CONTROLLER, NODE)) {
                settings.putAll(config.perServerOverrideProperties().getOrDefault(server, Map.of()));
            }
            String racks = IntStream.range(NODE, NODE + config.numBrokers())
                .mapToObj(id -> config.perServerOverrideProperties().getOrDefault(id, Map.of()))
                .map(own -> own.getOrDefault("broker.rack", "")).collect(Collectors.joining(","));
            if (config.numBrokers() > 1 && !racks.matches(",*")) {
                settings.put("broker.rack", racks);
            }
            PlainLogins.settings(config.brokerSecurityProtocol()).forEach(settings::putIfAbsent);
            nodeIds = IntStream.range(NODE, NODE + config.numBrokers()).boxed().collect(Collectors.toSet());
            if (nodeIds.size() == 1) {
                settings.replaceAll((key, value) -> isOfReplicas(key) ? "1" : value);
            }
            String release = BrokerObjects.release(config.metadataVersion());
            process = nodeIds.size() == 1 ? new OurProcess(settings, release)
                : OurProcess.cluster(settings, release, nodeIds.size());
        }

        private static boolean isOfReplicas(String key) {
            return key.endsWith("replication.factor") || key.endsWith("min.isr") || key.equals("min.insync.replicas");
        }

        @Override
        public void start() {
            if (!isStarted) {
                isStarted = true;
                NewTopic.nodeCount = nodeIds.size();
                process.start();
                config.features().forEach(this::set);
            }
        }

        /** Gives a feature the level that the test wants, from whatever it has by itself. */
        private void set(Feature feature, short level) {
            try (Admin admin = admin()) {
                var found = admin.describeFeatures().featureMetadata().get().finalizedFeatures();
                var range = found.get(feature.featureName());
                int now = range == null ? 0 : range.maxVersionLevel();
                if (now != level) {
                    var way = now < level ? FeatureUpdate.UpgradeType.UPGRADE
                        : FeatureUpdate.UpgradeType.SAFE_DOWNGRADE;
                    var update = Map.of(feature.featureName(), new FeatureUpdate(level, way));
                    admin.updateFeatures(update, new UpdateFeaturesOptions()).all().get();
                }
            } catch (InterruptedException | ExecutionException error) {
                throw new IllegalStateException(error);
            }
        }

        @Override
        public void stop() {
            isStopped = true;
            if (admin != null) {
                admin.close(Duration.ZERO);
            }
            process.stop();
        }

        @Override
        public void shutdownBroker(int id) {
            if (nodeIds.size() == 1) {
                process.stop();
            } else {
                process.stopNode(id);
            }
        }

        /** A real broker takes a second to start, in which clients see that theirs has gone. */
        private static void letClientsNotice() {
            try {
                Thread.sleep(1000);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
        }

        @Override
        public void startBroker(int id) {
            letClientsNotice();
            if (nodeIds.size() == 1) {
                process.start();
            } else {
                process.startNode(id);
            }
        }

        @Override
        public String bootstrapServers() {
            start();
            return process.bootstrap();
        }

        @Override
        public void createTopic(String topic, int partitions, short replicas, Map<String, String> settings)
            throws InterruptedException {
            try (Admin admin = admin()) {
                admin.createTopics(List.of(new NewTopic(topic, partitions, replicas).configs(settings))).all().get();
            } catch (ExecutionException error) {
                if (!(error.getCause() instanceof TopicExistsException)) {
                    throw new IllegalStateException(error);
                }
            }
        }

        @Override
        public void createTopic(String topic, int partitions, short replicas) throws InterruptedException {
            createTopic(topic, partitions, replicas, Map.of());
        }

        @Override
        public Set<GroupProtocol> supportedGroupProtocols() {
            return EnumSet.allOf(GroupProtocol.class);
        }

        @Override
        public String clusterId() {
            try (Admin admin = admin()) {
                return admin.describeCluster().clusterId().get();
            } catch (InterruptedException | ExecutionException error) {
                throw new IllegalStateException(error);
            }
        }

        @Override
        public Type type() {
            return Type.KRAFT;
        }

        @Override
        public ClusterConfig config() {
            return config;
        }

        @Override
        public Map<Integer, KafkaBroker> brokers() {
            return nodeIds.stream().collect(Collectors.toMap(id -> id, id -> objects(id).broker()));
        }

        @Override
        public Map<Integer, KafkaBroker> aliveBrokers() {
            Map<Integer, KafkaBroker> alive = brokers();
            alive.keySet().removeIf(id -> !process.isRunning(id));
            return alive;
        }

        @Override
        public void waitTopicCreation(String topic, int partitions) throws InterruptedException {
            waitForPartitions(topic, Optional.of(partitions));
        }

        @Override
        public void waitTopicDeletion(String topic) throws InterruptedException {
            waitForPartitions(topic, Optional.empty());
        }

        private void waitForPartitions(String topic, Optional<Integer> count) throws InterruptedException {
            var cache = objects(NODE).broker().metadataCache();
            TestUtils.waitForCondition(() -> cache.numPartitions(topic).equals(count), topic + " has not " + count);
        }

        /** Nothing to wait for: all nodes know what the first one knows. */
        @Override
        public void ensureConsistentMetadata(Collection<KafkaBroker> brokers, Collection<ControllerServer> all) {
        }

        @Override
        public Map<Integer, ControllerServer> controllers() {
            return Map.of(NODE, objects(NODE).controller());
        }

        private BrokerObjects objects(int id) {
            admin = admin == null ? admin() : admin;
            return objects.computeIfAbsent(id, one -> {
                Map<String, String> its = new HashMap<>(settings);
                its.put("node.id", String.valueOf(one));
                BrokerObjects made = new BrokerObjects(process, () -> admin, BrokerObjects.config(its));
                made.stubLife(() -> startBroker(one), () -> shutdownBroker(one));
                if (nodeIds.size() > 1) {
                    made.stubPorts(listener -> process.nodePort(one));
                }
                return made;
            });
        }

        @Override
        public List<Authorizer> authorizers() {
            return List.of();
        }

        @Override
        public Set<Integer> controllerIds() {
            return Set.of(NODE);
        }

        @Override
        public Set<Integer> brokerIds() {
            return nodeIds;
        }

        @Override
        public ListenerName clientListener() {
            return ListenerName.normalised("PLAINTEXT");
        }

        @Override
        public ListenerName controllerListenerName() {
            return ListenerName.normalised("CONTROLLER");
        }

        @Override
        public String bootstrapControllers() {
            return bootstrapServers();
        }

        @Override
        public boolean started() {
            return isStarted;
        }

        @Override
        public boolean stopped() {
            return isStopped;
        }

        @Override
        public void waitForReadyBrokers() {
            start();
        }

        @Override
        public Optional<FaultHandlerException> firstFatalException() {
            return Optional.empty();
        }

        @Override
        public Optional<FaultHandlerException> firstNonFatalException() {
            return Optional.empty();
        }
    }
}
