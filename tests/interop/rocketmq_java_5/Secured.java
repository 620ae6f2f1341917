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
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.RPCHook;

/**
 * Users of the official Java client, by TLS and without: java Secured NAME_SERVER. Topic "orders" is
 * there, "writer" may write to it, "reader" read it as group "readers", both with the password "pw".
 */
public class Secured {
    static final long PATIENCE_SECONDS = 40;
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
        producer.start();
        return producer;
    }

    static void send(String nameServer, RPCHook hook, boolean isTls, String body) throws Exception {
        DefaultMQProducer producer = producer(nameServer, hook, isTls);
        try {
            SendResult result = producer.send(new Message("orders", body.getBytes(StandardCharsets.UTF_8)));
            System.out.printf("%s: %s%n", body, result.getSendStatus());
        } catch (MQClientException error) {
            MQBrokerException cause = (MQBrokerException) error.getCause();
            System.out.printf("%s: %d %s%n", body, cause.getResponseCode(), cause.getErrorMessage());
        } finally {
            producer.shutdown();
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
