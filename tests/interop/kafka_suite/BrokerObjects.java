package logstore;

import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyBoolean;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.anyString;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.doReturn;
import static org.mockito.Mockito.mock;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import kafka.cluster.Partition;
import kafka.log.LogManager;
import kafka.network.SocketServer;
import kafka.raft.KafkaRaftManager;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaApis;
import kafka.server.KafkaConfig;
import kafka.server.ReplicaManager;
import kafka.server.SharedServer;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.TopicListing;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.controller.ResultOrError;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.raft.LogOffsetMetadata;
import org.apache.kafka.raft.RaftLog;
import org.apache.kafka.server.BrokerLifecycleManager;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.mockito.stubbing.Answer;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The objects of a broker and of a controller that Kafka's tests ask where to connect and what topics there are.
 *
 * They tell what a client is told by the one `logstore serve`; whatever else they are asked they refuse, so that a
 * test which looks into a broker fails with the name of what it looked for.
 */
public final class BrokerObjects {
    private static final Answer<Object> REFUSE = call -> {
        if (call.getMethod().getName().equals("toString")) {
            return "the object of a broker";
        }
        throw new UnsupportedOperationException("looks into a broker: " + call.getMethod());
    };

    private final OurProcess process;
    private final Supplier<Admin> admin;
    private final BrokerServer broker = mock(BrokerServer.class, REFUSE);
    private final ControllerServer controller = mock(ControllerServer.class, REFUSE);

    public BrokerObjects(OurProcess process, Supplier<Admin> admin, KafkaConfig config) {
        this.process = process;
        this.admin = admin;
        stubBroker(config);
        stubController();
    }

    /** The release whose metadata a test wants, or the newest one where there is none yet. */
    public static String release(MetadataVersion version) {
        return (version.isProduction() ? version : MetadataVersion.latestProduction()).version();
    }

    /** Lets a test start and stop the broker by its object. */
    public void stubLife(Runnable start, Runnable stop) {
        doAnswer(call -> run(start)).when(broker).startup();
        doAnswer(call -> run(stop)).when(broker).shutdown();
        doAnswer(call -> run(stop)).when(broker).shutdown(any());
        doAnswer(call -> null).when(broker).awaitShutdown();
        int id = broker.config().brokerId();
        doAnswer(call -> !process.isRunning(id)).when(broker).isShutdown();
        doAnswer(call -> process.isRunning(id) ? BrokerState.RUNNING : BrokerState.NOT_RUNNING)
            .when(broker).brokerState();
    }

    private static Object run(Runnable step) {
        step.run();
        return null;
    }

    public BrokerServer broker() {
        return broker;
    }

    public ControllerServer controller() {
        return controller;
    }

    private void stubBroker(KafkaConfig config) {
        SocketServer sockets = mock(SocketServer.class, REFUSE);
        doAnswer(call -> process.port()).when(sockets).boundPort(any());
        KRaftMetadataCache cache = mock(KRaftMetadataCache.class, REFUSE);
        doAnswer(call -> described(call.getArgument(0)).map(topic -> topic.partitions().size()))
            .when(cache).numPartitions(anyString());
        doAnswer(call -> leader(call.getArgument(0), call.getArgument(1))).when(cache)
            .getLeaderAndIsr(anyString(), anyInt());
        doAnswer(call -> List.copyOf(admin.get().describeCluster().nodes().get())).when(cache)
            .getAliveBrokerNodes(any());
        doReturn(true).when(cache).hasAliveBroker(anyInt());
        doAnswer(call -> described(call.getArgument(0)).isPresent()).when(cache).contains(anyString());
        doAnswer(call -> topicIds().getOrDefault(call.<String>getArgument(0), Uuid.ZERO_UUID))
            .when(cache).getTopicId(anyString());
        GroupCoordinator groups = mock(GroupCoordinator.class, REFUSE);
        doReturn(new Properties()).when(groups).groupMetadataTopicConfigs();
        doReturn(config).when(broker).config();
        doReturn(sockets).when(broker).socketServer();
        doAnswer(call -> process.port()).when(broker).boundPort(any());
        doReturn(cache).when(broker).metadataCache();
        doReturn(groups).when(broker).groupCoordinator();
        doAnswer(call -> admin.get().describeCluster().clusterId().get()).when(broker).clusterId();
        ReplicaManager replicas = mock(ReplicaManager.class, REFUSE);
        doAnswer(call -> replica(call.getArgument(0))).when(replicas).onlinePartition(any());
        doReturn(replicas).when(broker).replicaManager();
        stubLogs(replicas);
        doReturn(sockets).when(controller).socketServer(); // nobody else listens
        BrokerLifecycleManager life = mock(BrokerLifecycleManager.class, REFUSE);
        doReturn(CompletableFuture.completedFuture(null)).when(life).initialUnfenceFuture();
        doReturn(life).when(broker).lifecycleManager();
        SharedServer shared = mock(SharedServer.class, REFUSE);
        doReturn(null).when(shared).loader(); // what a client is told is all there is to wait for
        doReturn(shared).when(broker).sharedServer();
        Option<?> rules = Option.apply(Plugin.wrapInstance(new RulesByAdmin(admin), null, "authorizer.class.name"));
        doReturn(rules).when(broker).authorizerPlugin();
        doReturn(rules).when(controller).authorizerPlugin();
        KafkaApis requests = mock(KafkaApis.class, REFUSE);
        doReturn(cache).when(requests).metadataCache();
        doReturn(rules).when(requests).authorizerPlugin();
        doAnswer(call -> broker.clusterId()).when(requests).clusterId();
        doAnswer(call -> broker.config().brokerId()).when(requests).brokerId();
        doReturn(requests).when(broker).dataPlaneRequestProcessor();
    }

    private void stubLogs(ReplicaManager replicas) {
        LogManager logs = mock(LogManager.class, REFUSE);
        doAnswer(call -> log(call.getArgument(0))).when(logs).getLog(any(), anyBoolean());
        doReturn(false).when(logs).getLog$default$2();
        doAnswer(call -> new ProducerStateManagerConfig(Integer.parseInt(setting("producer.id.expiration.ms")), false))
            .when(logs).producerStateManagerConfig();
        doReturn(CollectionConverters.asScala(List.of(process.data().toFile())).toSeq()).when(logs).liveLogDirs();
        doReturn(logs).when(broker).logManager();
        doReturn(logs).when(replicas).logManager();
        doAnswer(call -> log(call.getArgument(0))).when(replicas).localLog(any(TopicPartition.class));
    }

    /** Tells other ports than the first one, for listeners that have one of their own. */
    public void stubPorts(Function<ListenerName, Integer> port) {
        doAnswer(call -> port.apply(call.getArgument(0))).when(broker).boundPort(any());
        SocketServer sockets = broker.socketServer();
        doAnswer(call -> port.apply(call.getArgument(0))).when(sockets).boundPort(any());
    }

    private void stubController() {
        Controller inner = mock(Controller.class, REFUSE);
        doAnswer(call -> CompletableFuture.completedFuture(topicIds())).when(inner).findAllTopicIds(any());
        doAnswer(call -> CompletableFuture.completedFuture(idsOf(call.getArgument(1))))
            .when(inner).findTopicIds(any(), any());
        doReturn(true).when(inner).isActive();
        doReturn(inner).when(controller).controller();
        RaftLog log = mock(RaftLog.class, REFUSE);
        doReturn(new LogOffsetMetadata(0)).when(log).endOffset();
        KafkaRaftManager<?> raft = mock(KafkaRaftManager.class, REFUSE);
        doReturn(log).when(raft).raftLog();
        doReturn(raft).when(controller).raftManager();
    }

    /** Returns what a real broker would make of the settings of a test. */
    public static KafkaConfig config(Map<String, String> settings) {
        Properties all = new Properties();
        all.putAll(Map.of(
            "process.roles", "broker", "controller.quorum.voters", "1000@localhost:9093",
            "controller.listener.names", "CONTROLLER", "listeners", "PLAINTEXT://localhost:9092",
            "listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
        ));
        settings.forEach(all::putIfAbsent);
        return new KafkaConfig(all, false);
    }

    private Map<String, Uuid> topicIds() throws Exception {
        var all = admin.get().listTopics(new ListTopicsOptions().listInternal(true)).listings().get();
        return all.stream().collect(Collectors.toMap(TopicListing::name, TopicListing::topicId));
    }

    private Map<String, ResultOrError<Uuid>> idsOf(Collection<String> topics) throws Exception {
        Map<String, Uuid> all = topicIds();
        return topics.stream().collect(Collectors.toMap(Function.identity(), topic -> all.containsKey(topic)
            ? new ResultOrError<>(all.get(topic)) : new ResultOrError<>(new ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION))
        ));
    }

    private Optional<TopicDescription> described(String topic) throws Exception {
        try {
            return Optional.of(admin.get().describeTopics(Set.of(topic)).allTopicNames().get().get(topic));
        } catch (ExecutionException error) {
            if (error.getCause() instanceof UnknownTopicOrPartitionException) {
                return Optional.empty();
            }
            throw error;
        }
    }

    private Optional<LeaderAndIsr> leader(String topic, int partition) throws Exception {
        return described(topic).map(found -> found.partitions().get(partition)).map(found -> new LeaderAndIsr(
            found.leader() == null ? LeaderAndIsr.NO_LEADER : found.leader().id(),
            found.isr().stream().map(Node::id).toList()
        ));
    }

    private String setting(String name) throws Exception {
        var about = new ConfigResource(ConfigResource.Type.BROKER, String.valueOf(broker.config().brokerId()));
        return admin.get().describeConfigs(Set.of(about)).all().get().get(about).get(name).value();
    }

    private Option<UnifiedLog> log(TopicPartition about) throws Exception {
        int count = described(about.topic()).map(topic -> topic.partitions().size()).orElse(0);
        if (about.partition() >= count) {
            return Option.empty();
        }
        UnifiedLog log = mock(UnifiedLog.class, REFUSE);
        doAnswer(call -> offset(about, OffsetSpec.earliest())).when(log).logStartOffset();
        doAnswer(call -> offset(about, OffsetSpec.latest())).when(log).logEndOffset();
        doAnswer(call -> offset(about, OffsetSpec.latest())).when(log).highWatermark();
        return Option.apply(log);
    }

    private long offset(TopicPartition about, OffsetSpec which) throws Exception {
        return admin.get().listOffsets(Map.of(about, which)).partitionResult(about).get().offset();
    }

    private int leaderEpoch(TopicPartition about) throws Exception {
        var latest = admin.get().listOffsets(Map.of(about, OffsetSpec.latest())).partitionResult(about).get();
        return latest.leaderEpoch().orElseThrow();
    }

    private Option<Partition> replica(TopicPartition about) throws Exception {
        int count = described(about.topic()).map(topic -> topic.partitions().size()).orElse(0);
        if (about.partition() >= count) {
            return Option.empty();
        }
        Partition partition = mock(Partition.class, REFUSE);
        doAnswer(call -> log(about)).when(partition).leaderLogIfLocal();
        doAnswer(call -> Option.apply(leader(about.topic(), about.partition()).orElseThrow().leader())
            .filter(id -> (int) id == broker.config().brokerId())).when(partition).leaderIdIfLocal();
        doAnswer(call -> leaderEpoch(about)).when(partition).getLeaderEpoch();
        doAnswer(call -> Option.apply(leader(about.topic(), about.partition()).orElseThrow().leader()))
            .when(partition).leaderReplicaIdOpt();
        return Option.apply(partition);
    }
}
