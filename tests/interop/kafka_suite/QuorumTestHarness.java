package kafka.server;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.stream.Stream;
import kafka.utils.Logging;
import kafka.utils.TestInfoUtils;
import logstore.BrokerObjects;
import logstore.ListenerDoors;
import logstore.OurProcess;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.GroupProtocol;
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
 * It stands before the class of that name in Kafka's jars. The first broker that a test makes is ours; those that it
 * makes besides are others names for it.
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
        Map<String, String> settings = new HashMap<>();
        config.originals().forEach((key, value) -> settings.put(key, settingOf(key, String.valueOf(value))));
        if (process == null) {
            Map<String, String> ours = new HashMap<>(settings);
            ours.keySet().removeIf(key -> OF_A_REAL_CLUSTER.stream().anyMatch(key::startsWith));
            ours.put("node.id", String.valueOf(config.brokerId()));
            doors = ListenerDoors.wantedBy(settings);
            doors.ifPresent(found -> ours.putAll(found.settings()));
            process = new OurProcess(ours, BrokerObjects.release(metadataVersion()));
        }
        BrokerObjects objects = new BrokerObjects(process, this::admin, new KafkaConfig(settings, false));
        objects.stubLife(this::start, this::stop);
        doors.ifPresent(found -> objects.stubPorts(found::port));
        first = first == null ? objects : first;
        if (isStarted) {
            start();
        }
        return objects.broker();
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
            admin = Admin.create(Map.of(
                "bootstrap.servers", doors.map(ListenerDoors::bootstrap).orElseGet(process::bootstrap)
            ));
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
