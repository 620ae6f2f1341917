import java.util.Set;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** What 4.x and 5.x do not spell alike, found by the names of methods. */
final class Versions {
    private Versions() {}

    /** Give a consumer the message model BROADCASTING. */
    static void broadcast(DefaultMQPushConsumer consumer) throws Exception {
        for (var method : DefaultMQPushConsumer.class.getMethods()) {
            if (!method.getName().equals("setMessageModel")) continue;
            for (Object model : method.getParameterTypes()[0].getEnumConstants()) {
                if (model.toString().equals("BROADCASTING")) method.invoke(consumer, model);
            }
        }
    }

    /** Have a client tell every broker of itself now. */
    static void heartBeat(DefaultMQProducer producer) throws Exception {
        Object inner = producer.getDefaultMQProducerImpl();
        for (var method : inner.getClass().getMethods()) {
            if (!method.getName().equalsIgnoreCase("getMQClientFactory")) continue;
            Object client = method.invoke(inner);
            client.getClass().getMethod("sendHeartbeatToAllBrokerWithLock").invoke(client);
        }
    }

    /** Create a consumer group that tries so often. */
    static void createGroup(DefaultMQAdminExt admin, String broker, String group, int tries) throws Exception {
        for (var method : DefaultMQAdminExt.class.getMethods()) {
            if (!method.getName().equals("createAndUpdateSubscriptionGroupConfig")) continue;
            Class<?> kind = method.getParameterTypes()[1];
            Object config = kind.getConstructor().newInstance();
            kind.getMethod("setGroupName", String.class).invoke(config, group);
            kind.getMethod("setRetryMaxTimes", int.class).invoke(config, tries);
            method.invoke(admin, broker, config);
        }
    }

    /** Remove the route of a topic; 4.x names the cluster as well. */
    static void deleteRoute(DefaultMQAdminExt admin, String nameServer, String topic) throws Exception {
        for (var method : DefaultMQAdminExt.class.getMethods()) {
            if (!method.getName().equals("deleteTopicInNameServer")) continue;
            if (method.getParameterCount() == 2) {
                method.invoke(admin, Set.of(nameServer), topic);
                return;
            }
        }
        for (var method : DefaultMQAdminExt.class.getMethods()) {
            if (method.getName().equals("deleteTopicInNameServer")) {
                method.invoke(admin, Set.of(nameServer), topic, "DefaultCluster");
            }
        }
    }
}
