import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.*;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.function.Supplier;
import kafka.server.ReplicaManager;
import kafka.server.share.SharePartition;
import org.apache.kafka.clients.consumer.internals.ShareAcquireMode;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.FetchResponseData.AbortedTransaction;
import org.apache.kafka.common.message.ShareFetchResponseData.AcquiredRecords;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.server.purgatory.DelayedOperationPurgatory;
import org.apache.kafka.server.share.acknowledge.ShareAcknowledgementBatch;
import org.apache.kafka.server.share.fetch.InFlightBatch;
import org.apache.kafka.server.share.fetch.InFlightState;
import org.apache.kafka.server.share.persister.*;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchPartitionData;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.server.util.timer.TimerTaskEntry;

/**
 * Asks the real share-partition: a line is a step of its life, and is answered with a line.
 *
 * "open START LIMIT IN_FLIGHT LOCK_MS first-last-state-count,...", "acquire MEMBER MODE BATCH_SIZE
 * MAX OFFSET base-last[-producer[-A]],... producer-first,...", "say MEMBER first-last-t.t,...",
 * "release MEMBER", "start OFFSET", "pass MS", "refuse true"; "-" is for nothing.
 */
public final class SharePartitions {
    private static final TopicIdPartition PARTITION =
        new TopicIdPartition(Uuid.randomUuid(), new TopicPartition("t", 0));

    private static SharePartition partition;
    private static long nowMs;
    private static boolean refuses;
    private static int startedAt;
    private static final List<PersisterStateBatch> kept = new ArrayList<>();
    private static final List<String> writes = new ArrayList<>();
    private static final PriorityQueue<TimerTaskEntry> timers =
        new PriorityQueue<>(Comparator.comparingLong(entry -> entry.expirationMs));

    public static void main(String[] arguments) throws Exception {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) System.out.println(answer(lines.nextLine().split(" ")));
        System.exit(0);
    }

    private static String answer(String[] words) throws Exception {
        writes.clear();
        String result = "-";
        switch (words[0]) {
            case "open" -> open(words);
            case "acquire" -> {
                try {
                    result = acquire(words);
                } catch (IllegalStateException error) {
                    result = error.getClass().getSimpleName();
                }
            }
            case "say" -> result = outcome(() -> partition.acknowledge(words[1], said(words[2])));
            case "release" -> result = outcome(() -> partition.releaseAcquiredRecords(words[1]));
            case "start" -> call("updateCacheAndOffsets", Long.parseLong(words[1]));
            case "pass" -> pass(Long.parseLong(words[1]));
            case "refuse" -> refuses = Boolean.parseBoolean(words[1]);
            default -> throw new IllegalArgumentException(words[0]);
        }
        String written = words[0].equals("pass") || writes.isEmpty() ? "-" : String.join(";", writes);
        long next = partition.nextFetchOffset();
        return String.join(" ", result, written, "" + call("startOffset"), "" + call("endOffset"),
            "" + next, "" + call("canAcquireRecords"), "" + call("deliveryCompleteCount"), states());
    }

    private static void open(String[] words) throws Exception {
        timers.clear();
        refuses = false;
        kept.clear();
        for (String one : parts(words[5])) {
            long[] numbers = numbers(one);
            kept.add(new PersisterStateBatch(numbers[0], numbers[1], (byte) numbers[2], (short) numbers[3]));
        }
        startedAt = Integer.parseInt(words[1]);
        for (Constructor<?> constructor : SharePartition.class.getDeclaredConstructors()) {
            if (constructor.getParameterCount() != 12) continue;
            constructor.setAccessible(true);
            partition = (SharePartition) constructor.newInstance("g", PARTITION, 0,
                Integer.parseInt(words[3]), Integer.parseInt(words[2]), Integer.parseInt(words[4]),
                new Hourglass(), new Clock(), new Keeper(), replicas(), made(NoGroupConfigs.class), null);
        }
        partition.maybeInitialize().get();
    }

    private static String acquire(String[] words) throws Exception {
        long offset = Long.parseLong(words[5]);
        ByteBuffer buffer = ByteBuffer.allocate(1 << 16);
        for (String one : parts(words[6])) {
            String[] batch = one.split("-");
            long base = Long.parseLong(batch[0]), last = Long.parseLong(batch[1]);
            if (batch.length == 4) {
                buffer.put(MemoryRecords.withEndTransactionMarker(base, 0, 0, Long.parseLong(batch[2]),
                    (short) 0, new EndTransactionMarker(ControlRecordType.ABORT, 0)).buffer());
                continue;
            }
            long producer = batch.length == 3 ? Long.parseLong(batch[2]) : -1;
            ByteBuffer some = ByteBuffer.allocate(1024);
            MemoryRecordsBuilder builder = MemoryRecords.builder(some, RecordBatch.CURRENT_MAGIC_VALUE,
                Compression.NONE, TimestampType.CREATE_TIME, base, -1, producer,
                (short) (producer < 0 ? -1 : 0), producer < 0 ? -1 : 0, producer >= 0, 0);
            builder.appendWithOffset(base, 0, (byte[]) null, null);
            if (last > base) builder.appendWithOffset(last, 0, (byte[]) null, null);
            buffer.put(builder.build().buffer());
        }
        buffer.flip();
        List<AbortedTransaction> aborted = new ArrayList<>();
        for (String one : parts(words[7])) {
            long[] numbers = numbers(one);
            aborted.add(new AbortedTransaction().setProducerId(numbers[0]).setFirstOffset(numbers[1]));
        }
        FetchPartitionData data = new FetchPartitionData(Errors.NONE, 0, 0,
            MemoryRecords.readableRecords(buffer), Optional.empty(), OptionalLong.empty(),
            aborted.isEmpty() ? Optional.empty() : Optional.of(aborted), OptionalInt.empty(), false);
        List<String> acquired = new ArrayList<>();
        for (AcquiredRecords some : partition.acquire(words[1], ShareAcquireMode.forId(Byte.parseByte(words[2])),
                Integer.parseInt(words[3]), Integer.parseInt(words[4]), offset, data,
                aborted.isEmpty() ? FetchIsolation.HIGH_WATERMARK : FetchIsolation.TXN_COMMITTED).acquiredRecords()) {
            acquired.add(some.firstOffset() + "-" + some.lastOffset() + "*" + some.deliveryCount());
        }
        return acquired.isEmpty() ? "-" : String.join(",", acquired);
    }

    private static List<ShareAcknowledgementBatch> said(String text) {
        List<ShareAcknowledgementBatch> said = new ArrayList<>();
        for (String one : parts(text)) {
            String[] batch = one.split("-");
            List<Byte> types = Arrays.stream(batch[2].split("\\.")).map(Byte::valueOf).toList();
            said.add(new ShareAcknowledgementBatch(Long.parseLong(batch[0]), Long.parseLong(batch[1]), types));
        }
        return said;
    }

    private static String outcome(Supplier<CompletableFuture<Void>> ask) throws InterruptedException {
        try {
            ask.get().get();
            return "NONE";
        } catch (ExecutionException error) {
            return Errors.forException(error.getCause()).name();
        } catch (RuntimeException error) {
            return error.getClass().getSimpleName();
        }
    }

    private static void pass(long delayMs) {
        nowMs += delayMs;
        while (!timers.isEmpty() && timers.peek().expirationMs <= nowMs) {
            TimerTaskEntry entry = timers.poll();
            if (!entry.cancelled()) entry.timerTask.run();
        }
    }

    private static String states() throws Exception {
        List<String> shown = new ArrayList<>();
        for (InFlightBatch batch : ((NavigableMap<Long, InFlightBatch>) call("cachedState")).values()) {
            if (batch.offsetState() == null) {
                shown.add(batch.firstOffset() + "-" + batch.lastOffset() + state(batch.batchState().name(),
                    batch.batchMemberId(), batch.batchDeliveryCount()));
                continue;
            }
            for (Map.Entry<Long, InFlightState> one : batch.offsetState().entrySet()) {
                InFlightState state = one.getValue();
                shown.add(one.getKey() + "-" + one.getKey() + state(state.state().name(), state.memberId(), state.deliveryCount()));
            }
        }
        return shown.isEmpty() ? "-" : String.join(",", shown);
    }

    private static String state(String name, String member, int count) {
        return "=" + name + member + "*" + count;
    }

    private static Object call(String name, Object... values) throws Exception {
        for (Method method : SharePartition.class.getDeclaredMethods()) {
            if (!method.getName().equals(name) || method.getParameterCount() != values.length) continue;
            method.setAccessible(true);
            return method.invoke(partition, values);
        }
        throw new NoSuchMethodException(name);
    }

    private static List<String> parts(String text) {
        return text.equals("-") ? List.of() : Arrays.asList(text.split(","));
    }

    private static long[] numbers(String text) {
        return Arrays.stream(text.split("-")).mapToLong(Long::parseLong).toArray();
    }

    /** A broker's parts that a share-partition only knows of: made without their constructors. */
    private static <T> T made(Class<T> kind) throws Exception {
        return kind.cast(unsafe().allocateInstance(kind));
    }

    private static ReplicaManager replicas() throws Exception {
        ReplicaManager replicas = made(ReplicaManager.class);
        Field field = ReplicaManager.class.getDeclaredField("delayedShareFetchPurgatory");
        unsafe().putObject(replicas, unsafe().objectFieldOffset(field), purgatory());
        return replicas;
    }

    private static Object purgatory;

    private static Object purgatory() {
        if (purgatory == null) purgatory = new DelayedOperationPurgatory<>("ShareFetch", new Hourglass(), 0, false);
        return purgatory;
    }

    private static sun.misc.Unsafe unsafe() throws Exception {
        Field field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        return (sun.misc.Unsafe) field.get(null);
    }

    static final class NoGroupConfigs extends GroupConfigManager {
        NoGroupConfigs() {
            super(Map.of(), null, null);
        }

        @Override
        public Optional<GroupConfig> groupConfig(String groupId) {
            return Optional.empty();
        }
    }

    static final class Hourglass implements Timer {
        @Override
        public void add(TimerTask task) {
            timers.add(new TimerTaskEntry(task, nowMs + task.delayMs));
        }

        @Override
        public boolean advanceClock(long timeoutMs) {
            return false;
        }

        @Override
        public int size() {
            return timers.size();
        }

        @Override
        public void close() {
        }
    }

    static final class Clock implements Time {
        @Override
        public long milliseconds() {
            return nowMs;
        }

        @Override
        public long nanoseconds() {
            return nowMs * 1_000_000;
        }

        @Override
        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }

    static final class Keeper extends NoOpStatePersister {
        @Override
        public CompletableFuture<ReadShareGroupStateResult> readState(ReadShareGroupStateParameters asked) {
            return CompletableFuture.completedFuture(new ReadShareGroupStateResult.Builder().setTopicsData(List.of(
                new TopicData<>(PARTITION.topicId(), List.of(PartitionFactory.newPartitionAllData(
                    0, 1, startedAt, Errors.NONE.code(), null, List.copyOf(kept)))))).build());
        }

        @Override
        public CompletableFuture<WriteShareGroupStateResult> writeState(WriteShareGroupStateParameters asked) {
            PartitionStateBatchData data =
                asked.groupTopicPartitionData().topicsData().get(0).partitions().get(0);
            StringBuilder text = new StringBuilder(data.startOffset() + "/" + data.deliveryCompleteCount());
            long first = -1, last = -1;
            String what = "";
            for (PersisterStateBatch batch : data.stateBatches()) {
                String like = "=" + batch.deliveryState() + "*" + batch.deliveryCount();
                if (batch.firstOffset() == last + 1 && like.equals(what)) {
                    last = batch.lastOffset();
                    continue;
                }
                if (!what.isEmpty()) text.append(",").append(first).append("-").append(last).append(what);
                first = batch.firstOffset();
                last = batch.lastOffset();
                what = like;
            }
            text.append(",").append(first).append("-").append(last).append(what);
            writes.add(text.toString());
            Errors error = refuses ? Errors.COORDINATOR_NOT_AVAILABLE : Errors.NONE;
            return CompletableFuture.completedFuture(new WriteShareGroupStateResult.Builder().setTopicsData(List.of(
                new TopicData<>(PARTITION.topicId(), List.of(PartitionFactory.newPartitionErrorData(
                    0, error.code(), null))))).build());
        }
    }
}
