import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.RPCHook;
import org.apache.rocketmq.remoting.exception.RemotingConnectException;

/**
 * Users of the official Java client, by TLS and without: java Secured NAME_SERVER. Topic "orders" is
 * there, "writer" may write to it, "reader" read it as group "readers", both with the password "pw".
 */
public class Secured {
    static final long PATIENCE_SECONDS = 40;
    static final int TIMEOUT_MS = 20_000;
    /** A machine that is busy may take longer to connect than the client waits. */
    static final int ATTEMPTS = 10;
    static int clients = 0;

    static RPCHook user(String name, String password) {
        return name == null ? null : new AclClientRPCHook(new SessionCredentials(name, password));
    }

    static DefaultMQProducer producer(String nameServer, RPCHook hook, boolean isTls) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("writers" + clients, hook);
        producer.setNamesrvAddr(nameServer);
        producer.setInstanceName("secured" + clients++);
        producer.setUseTLS(isTls);
        producer.setRetryTimesWhenSendFailed(0);
        producer.setSendMsgTimeout(TIMEOUT_MS);
        producer.start();
        return producer;
    }

    static void send(String nameServer, RPCHook hook, boolean isTls, String body) throws Exception {
        DefaultMQProducer producer = producer(nameServer, hook, isTls);
        try {
            System.out.printf("%s: %s%n", body, told(producer, body));
        } finally {
            producer.shutdown();
        }
    }

    static String told(DefaultMQProducer producer, String body) throws Exception {
        Message message = new Message("orders", body.getBytes(StandardCharsets.UTF_8));
        for (int attempt = 1; ; attempt++) {
            try {
                return producer.send(message).getSendStatus().toString();
            } catch (MQClientException error) {
                if (error.getCause() instanceof MQBrokerException) {
                    MQBrokerException cause = (MQBrokerException) error.getCause();
                    return cause.getResponseCode() + " " + cause.getErrorMessage();
                }
                if (attempt == ATTEMPTS) {
                    throw error;
                }
            } catch (RemotingConnectException error) {
                if (attempt == ATTEMPTS) {
                    throw error;
                }
            }
        }
    }

    static List<String> receive(String nameServer, RPCHook hook, boolean isTls, int count) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("readers", hook);
        consumer.setNamesrvAddr(nameServer);
        consumer.setInstanceName("secured" + clients++);
        consumer.setUseTLS(isTls);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("orders", "*");
        List<String> bodies = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch all = new CountDownLatch(count);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                bodies.add(new String(message.getBody(), StandardCharsets.UTF_8));
                all.countDown();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        all.await(PATIENCE_SECONDS, TimeUnit.SECONDS);
        consumer.shutdown();
        Collections.sort(bodies);
        return bodies;
    }

    public static void main(String[] args) throws Exception {
        String nameServer = args[0];
        for (boolean isTls : new boolean[] {false, true}) {
            System.out.println("== " + (isTls ? "by TLS" : "plain"));
            String how = isTls ? " by TLS" : "";
            send(nameServer, user("writer", "pw"), isTls, "good" + how);
            send(nameServer, user("writer", "wrong"), isTls, "wrong password" + how);
            send(nameServer, user("reader", "pw"), isTls, "may only read" + how);
            send(nameServer, user("nobody", "pw"), isTls, "unknown" + how);
            send(nameServer, null, isTls, "unsigned" + how);
        }
        System.out.println("== received");
        receive(nameServer, user("reader", "pw"), true, 2).forEach(System.out::println);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}
