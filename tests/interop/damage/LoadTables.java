import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

import org.apache.rocketmq.broker.offset.ConsumerOffsetManager;
import org.apache.rocketmq.broker.subscription.SubscriptionGroupManager;
import org.apache.rocketmq.broker.topic.TopicConfigManager;
import org.apache.rocketmq.common.ConfigManager;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;
import org.apache.rocketmq.broker.schedule.DelayOffsetSerializeWrapper;

/**
 * Loads tables as a broker does when it starts. Each line of stdin is the path of one. Prints
 * "== path", then what it holds, "!! refused" where the broker would not start.
 */
public final class LoadTables {
    public static void main(String[] arguments) throws Exception {
        StringBuilder told = new StringBuilder();
        for (String path : new String(System.in.readAllBytes(), StandardCharsets.UTF_8).split("\n")) {
            ConfigManager table = table(path);
            told.append("== ").append(path).append('\n');
            told.append(table.load() ? table.encode() : "!! refused").append('\n');
        }
        System.out.write(told.toString().getBytes(StandardCharsets.UTF_8));
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static ConfigManager table(String path) {
        switch (Path.of(path).getFileName().toString()) {
            case "topics.json":
                return new TopicConfigManager() {
                    @Override public String configFilePath() {
                        return path;
                    }
                };
            case "subscriptionGroup.json":
                return new SubscriptionGroupManager(null, false) {
                    @Override public String configFilePath() {
                        return path;
                    }
                };
            case "consumerOffset.json":
                return new ConsumerOffsetManager() {
                    @Override public String configFilePath() {
                        return path;
                    }
                };
            default:
                return new DelayOffsets(path);
        }
    }

    /** What ScheduleMessageService does, which needs a broker around it. */
    private static final class DelayOffsets extends ConfigManager {
        private final String path;
        private DelayOffsetSerializeWrapper table = new DelayOffsetSerializeWrapper();

        DelayOffsets(String path) {
            this.path = path;
        }

        @Override public String configFilePath() {
            return path;
        }

        @Override public void decode(String text) {
            DelayOffsetSerializeWrapper found =
                RemotingSerializable.fromJson(text, DelayOffsetSerializeWrapper.class);
            if (found != null) {
                table = found;
            }
        }

        @Override public String encode() {
            return encode(false);
        }

        @Override public String encode(boolean pretty) {
            return table.toJson(pretty);
        }
    }
}
