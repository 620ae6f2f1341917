package kafka.server;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import kafka.integration.KafkaServerTestHarness;
import kafka.utils.Logging;
import kafka.utils.TestInfoUtils;
import logstore.BrokerObjects;
import logstore.ListenerDoors;
import logstore.OurProcess;
import logstore.TlsListener;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.storage.Formatter;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.fault.MockFaultHandler;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.params.provider.Arguments;
import scala.Option;
import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Gives those of Kafka's tests that start brokers themselves a cluster that is one `logstore serve`.
 *
 * It stands before the class of that name in Kafka's jars. The brokers that a test makes are its nodes; where each has
 * listeners of several kinds, they are other names for the first one.
 */
public abstract class QuorumTestHarness implements Logging {
    private static final List<String> OF_A_REAL_CLUSTER = List.of(
        "listener", "advertised.", "inter.broker.", "security.inter.", "controller.", "process.roles", "log.dir",
        "metadata.log.", "unstable.", "server.max.", "broker.id", "node.id", "replica.", "principal.builder."
    );

    private final MockFaultHandler faults = new MockFaultHandler("no fault is ever told of");
    private final QuorumTestHarnessFaultHandlerFactory faultFactory = new QuorumTestHarnessFaultHandlerFactory(faults);
    private String logIdent = "";
    private TestInfo testInfo;
    private OurProcess process;
    private int nodeCount = 1;
    private Admin admin;
    private BrokerObjects first;
    private Optional<ListenerDoors> doors = Optional.empty();

    @BeforeEach
    public void setUp(TestInfo testInfo) {
        this.testInfo = testInfo;
        process = null;
        admin = null;
        first = null;
    }

    @AfterEach
    public void tearDown() {
        stop();
        doors.ifPresent(ListenerDoors::close);
        doors = Optional.empty();
    }

    public KafkaBroker createBroker(KafkaConfig config, Time time, boolean isStarted, Option<String> prefix) {
        Map<String, String> given = new HashMap<>();
        config.originals().forEach((key, value) -> given.put(key, text(value)));
        if (process == null) {
            doors = ListenerDoors.wantedBy(given);
            nodeCount = doors.isPresent() ? 1 : brokersWanted();
            NewTopic.nodeCount = nodeCount;
        }
        Map<String, String> settings = new HashMap<>(given);
        if (nodeCount == 1) {
            settings.replaceAll(QuorumTestHarness::settingOf);
        }
        if (process == null) {
            process = process(settings, config.brokerId());
        }
        BrokerObjects objects = new BrokerObjects(process, this::admin, new KafkaConfig(settings, false));
        if (nodeCount == 1) {
            objects.stubLife(this::start, this::stop);
        } else {
            stubNode(objects, config.brokerId());
        }
        doors.ifPresent(found -> objects.stubPorts(found::port));
        first = first == null ? objects : first;
        if (isStarted) {
            start();
        }
        return objects.broker();
    }

    private int brokersWanted() {
        return this instanceof KafkaServerTestHarness harness ? harness.configs().size() : 1;
    }

    private OurProcess process(Map<String, String> settings, int id) {
        Map<String, String> ours = new HashMap<>(settings);
        ours.keySet().removeIf(key -> OF_A_REAL_CLUSTER.stream().anyMatch(key::startsWith));
        ours.put("node.id", String.valueOf(id));
        doors.ifPresent(found -> ours.putAll(found.settings()));
        if (TlsListener.isWantedBy(this)) {
            ours.putAll(TlsListener.settings());
        }
        String release = BrokerObjects.release(metadataVersion());
        return nodeCount == 1 ? new OurProcess(ours, release) : OurProcess.cluster(ours, release, nodeCount);
    }

    private void stubNode(BrokerObjects objects, int id) {
        OurProcess cluster = process;
        objects.stubPorts(listener -> cluster.nodePort(id));
        objects.stubLife(
            () -> {
                if (cluster.isRunning()) {
                    cluster.startNode(id);
                } else {
                    cluster.start();
                }
            },
            () -> cluster.stopNode(id)
        );
    }

    private static String text(Object value) {
        if (value instanceof Password secret) {
            return secret.value();
        }
        return value instanceof List<?> words
            ? words.stream().map(String::valueOf).collect(Collectors.joining(",")) : String.valueOf(value);
    }

    private static String settingOf(String key, String value) {
        boolean isOfReplicas = key.endsWith("replication.factor") || key.endsWith("min.isr")
            || key.equals("min.insync.replicas");
        return isOfReplicas ? "1" : value;
    }

    private void start() {
        process.start();
    }

    private void stop() {
        if (admin != null) {
            admin.close(Duration.ZERO);
            admin = null;
        }
        if (process != null) {
            process.stop();
        }
    }

    private Admin admin() {
        if (admin == null) {
            Map<String, Object> client = new HashMap<>();
            if (TlsListener.isWantedBy(this)) {
                client.putAll(TlsListener.client((KafkaServerTestHarness) this));
            }
            client.put("bootstrap.servers", doors.map(ListenerDoors::bootstrap).orElseGet(process::bootstrap));
            admin = Admin.create(client);
        }
        return admin;
    }

    public Time createBroker$default$2() {
        return Time.SYSTEM;
    }

    public boolean createBroker$default$3() {
        return true;
    }

    public Option<String> createBroker$default$4() {
        return Option.empty();
    }

    public ControllerServer controllerServer() {
        return first.controller();
    }

    public Seq<ControllerServer> controllerServers() {
        return CollectionConverters.asScala(List.of(controllerServer())).toSeq();
    }

    public Option<GroupProtocol> maybeGroupProtocolSpecified() {
        return TestInfoUtils.maybeGroupProtocolSpecified(testInfo);
    }

    public GroupProtocol groupProtocolFromTestParameters() {
        return maybeGroupProtocolSpecified().get();
    }

    public static Stream<Arguments> getTestGroupProtocolParametersAll() {
        return Stream.of(Arguments.of("classic"), Arguments.of("consumer"));
    }

    public static Stream<Arguments> getTestGroupProtocolParametersClassicGroupProtocolOnly() {
        return Stream.of(Arguments.of("classic"));
    }

    public static Stream<Arguments> getTestGroupProtocolParametersConsumerGroupProtocolOnly() {
        return Stream.of(Arguments.of("consumer"));
    }

    public Seq<Properties> kraftControllerConfigs(TestInfo info) {
        return CollectionConverters.asScala(List.of(new Properties())).toSeq();
    }

    public Seq<SecurityProtocol> extraControllerSecurityProtocols() {
        return CollectionConverters.asScala(List.<SecurityProtocol>of()).toSeq();
    }

    public SecurityProtocol controllerListenerSecurityProtocol() {
        return SecurityProtocol.PLAINTEXT;
    }

    public MetadataVersion metadataVersion() {
        return MetadataVersion.latestProduction();
    }

    public void addFormatterSettings(Formatter formatter) {
    }

    public void shutdownKRaftController() {
        throw new UnsupportedOperationException("there is no controller to shut down");
    }

    public QuorumTestHarnessFaultHandlerFactory faultHandlerFactory() {
        return faultFactory;
    }

    public MockFaultHandler faultHandler() {
        return faults;
    }

    @Override
    public String logIdent() {
        return logIdent;
    }

    @Override
    public void logIdent_$eq(String given) {
        logIdent = given;
    }
}
