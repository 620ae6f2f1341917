import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListSet;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageRequestMode;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * Makes topics, messages and groups, whose consumers stay, and then is mqadmin:
 * java AdminStage NAME_SERVER BROKER; with one word more there is nothing but what commands make.
 *
 * A line of standard input is one command, its words separated by tabs; {@code $name} in it is what
 * was remembered by that name. Prints "== ", the number of the line, and what mqadmin wrote.
 */
public class AdminStage {
    static final long COMMAND_MS_MAX = 30_000;
    static final long HOUR_MS = 3_600_000;
    static final Map<String, String> KNOWN = new TreeMap<>();

    public static void main(String[] args) {
        PrintStream out = System.out;
        PrintStream errors = System.err;
        try {
            if (args.length == 2) prepare(new Lab(args[0], args[1], "adm", "stage"));
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            int number = 0;
            for (String line; (line = lines.readLine()) != null; number++) {
                for (Map.Entry<String, String> one : KNOWN.entrySet()) {
                    line = line.replace("$" + one.getKey(), one.getValue());
                }
                out.println("== " + number);
                out.println(said(line.split("\t", -1)));
                out.flush();
            }
        } catch (Throwable error) {
            error.printStackTrace(errors);
            Runtime.getRuntime().halt(1); // the clients' own threads would keep us
        }
        Runtime.getRuntime().halt(0);
    }

    /** Commands keep what they have closed: each is made anew. */
    static class Fresh extends MQAdminStartup {
        static void start(String[] words) {
            SUB_COMMANDS.clear();
            main0(words, null);
        }
    }

    static String said(String[] words) throws Exception {
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        PrintStream both = new PrintStream(said, true, "UTF-8");
        System.setOut(both);
        System.setErr(both);
        Thread command = new Thread(() -> {
            try {
                Fresh.start(words);
            } catch (Throwable error) {
                both.println("!! " + error);
            }
        });
        command.start();
        for (long end = System.currentTimeMillis() + COMMAND_MS_MAX; command.isAlive(); command.join(20)) {
            if (System.currentTimeMillis() > end) {
                both.println("!! it does not end");
                command.interrupt();
                break;
            }
            for (StackTraceElement one : command.getStackTrace()) {
                // A client waits up to three seconds for a thread of its own to end.
                if (one.getClassName().endsWith(".ServiceThread") && one.getMethodName().equals("shutdown")) {
                    command.interrupt();
                }
            }
        }
        return said.toString("UTF-8");
    }

    static void remember(String name, SendResult sent) {
        KNOWN.put(name + ".offset-id", String.valueOf(sent.getOffsetMsgId())); // a timed one has none
        KNOWN.put(name + ".id", sent.getMsgId());
    }

    static void prepare(Lab lab) throws Exception {
        plain(lab);
        orderly(lab);
        delayed(lab);
        transactions(lab);
        dead(lab);
        popped(lab);
        lite(lab);
        broadcast(lab);
    }

    static void plain(Lab lab) throws Exception {
        String topic = lab.topic("plain", 4);
        lab.topic("empty", 2);
        for (int n = 0; n < 12; n++) {
            Thread.sleep(5); // so that there is a time between messages
            if (n == 7) KNOWN.put("time", "" + System.currentTimeMillis());
            Message message = lab.message(topic, n % 2 == 0 ? "A" : "B", "body " + n);
            message.setKeys("key" + n + " shared");
            message.putUserProperty("n", "" + n);
            SendResult sent = lab.producer().send(message, Lab.queue(topic, n % 4));
            if (n == 5) remember("plain", sent);
        }
        Set<String> bodies = new ConcurrentSkipListSet<>();
        DefaultMQPushConsumer left = lab.consumer("left");
        left.subscribe(topic, "A");
        Pushing.listening(left, bodies);
        Lab.eventually("six", () -> bodies.size() == 6);
        left.getDefaultMQPushConsumerImpl().persistConsumerOffset();
        left.shutdown();
        for (int n = 0; n < 3; n++) lab.send(topic, n, "C", "later " + n);
        DefaultMQPushConsumer online = lab.consumer("online");
        online.subscribe(topic, "*");
        Set<String> seen = new ConcurrentSkipListSet<>();
        Pushing.listening(online, seen);
        Lab.eventually("fifteen", () -> seen.size() == 15);
        lab.committed(online, topic);
        KNOWN.put("online", online.buildMQClientId());
    }

    static void orderly(Lab lab) throws Exception {
        String topic = lab.topic("ordered", 2);
        for (int n = 0; n < 6; n++) lab.send(topic, n % 2, "", "o" + n);
        DefaultMQPushConsumer consumer = lab.consumer("orderly");
        consumer.subscribe(topic, "*");
        Set<String> seen = new ConcurrentSkipListSet<>();
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            messages.forEach(one -> seen.add(Lab.text(one)));
            return ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        Lab.eventually("six in order", () -> seen.size() == 6);
        lab.committed(consumer, topic);
    }

    static void delayed(Lab lab) throws Exception {
        String topic = lab.topic("delayed", 1);
        for (int level : new int[] {1, 18}) {
            Message message = lab.message(topic, "", "level " + level);
            message.setKeys("delay" + level);
            message.setDelayTimeLevel(level);
            remember("delayed" + level, lab.producer().send(message));
        }
        Message timed = lab.message(topic, "", "timed");
        timed.setDeliverTimeMs(System.currentTimeMillis() + HOUR_MS);
        remember("timed", lab.producer().send(timed));
        lab.drain(topic, 1);
    }

    static void transactions(Lab lab) throws Exception {
        String topic = lab.topic("decided", 1);
        TransactionMQProducer producer = new TransactionMQProducer(lab.group("deciders"));
        producer.setTransactionListener(new TransactionListener() {
            public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
                return Transactions.state((String) argument);
            }

            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                return LocalTransactionState.UNKNOW;
            }
        });
        lab.prepared(producer);
        for (String state : List.of("commit", "rollback", "none")) {
            Message message = lab.message(topic, "", "to " + state);
            message.setKeys(state);
            remember(state, producer.sendMessageInTransaction(message, state));
        }
        lab.drain(topic, 1);
    }

    static void dead(Lab lab) throws Exception {
        String topic = lab.topic("deadly", 1);
        String group = lab.group("failing");
        made(lab, group);
        DefaultMQPushConsumer consumer = lab.consumer("failing");
        consumer.subscribe(topic, "*");
        consumer.setMaxReconsumeTimes(0);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) ->
            ConsumeConcurrentlyStatus.RECONSUME_LATER);
        consumer.start();
        lab.send(topic, 0, "", "dies");
        lab.send(topic, 0, "", "dies too");
        Lab.eventually("dead letters", () -> {
            try {
                return lab.admin().maxOffset(Lab.queue("%DLQ%" + group, 0)) == 2;
            } catch (Exception none) {
                return false;
            }
        });
        lab.committed(consumer, topic);
    }

    static void made(Lab lab, String group) throws Exception {
        SubscriptionGroupConfig config = new SubscriptionGroupConfig();
        config.setGroupName(group);
        lab.admin().createAndUpdateSubscriptionGroupConfig(lab.broker, config);
    }

    static void popped(Lab lab) throws Exception {
        String topic = lab.topic("popped", 2);
        String group = lab.group("poppers");
        made(lab, group);
        lab.admin().setMessageRequestMode(lab.broker, topic, group, MessageRequestMode.POP, 0, 20_000);
        for (int n = 0; n < 4; n++) lab.send(topic, n % 2, "", "p" + n);
        Set<String> seen = new ConcurrentSkipListSet<>();
        DefaultMQPushConsumer consumer = lab.consumer("poppers");
        consumer.setClientRebalance(false);
        consumer.subscribe(topic, "*");
        Pushing.listening(consumer, seen);
        Lab.eventually("four popped", () -> seen.size() == 4);
        KNOWN.put("popping", consumer.buildMQClientId());
    }

    static void lite(Lab lab) throws Exception {
        String topic = lab.topic("pulled", 2);
        for (int n = 0; n < 4; n++) lab.send(topic, n % 2, "", "l" + n);
        DefaultLitePullConsumer consumer = Pulling.liteConsumer(lab, "lite");
        consumer.subscribe(topic, "*");
        consumer.setAutoCommit(false);
        consumer.start();
        Set<String> found = new TreeSet<>();
        Lab.eventually("four pulled", () -> {
            for (MessageExt message : consumer.poll(200)) found.add(Lab.text(message));
            return found.size() == 4;
        });
        Lab.eventually("commits", () -> {
            consumer.commit(Map.of(Lab.queue(topic, 0), 2L, Lab.queue(topic, 1), 2L), true);
            return lab.admin().examineConsumeStats(consumer.getConsumerGroup(), topic).computeTotalDiff() == 0;
        });
        KNOWN.put("pulling", consumer.buildMQClientId());
    }

    static void broadcast(Lab lab) throws Exception {
        String topic = lab.topic("told", 1);
        Set<String> seen = new ConcurrentSkipListSet<>();
        DefaultMQPushConsumer consumer = lab.consumer("listeners");
        consumer.setMessageModel(MessageModel.BROADCASTING);
        consumer.subscribe(topic, "*");
        Pushing.listening(consumer, seen);
        lab.send(topic, 0, "", "to all");
        Lab.eventually("one told", () -> seen.size() == 1);
    }
}
