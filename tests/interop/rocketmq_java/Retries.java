import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.TreeMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Messages that come later: delayed, refused by their consumer, given up. */
final class Retries {
    private Retries() {}

    static void delay(Lab lab) throws Exception {
        String topic = lab.topic(1);
        TreeMap<String, Long> sentAt = new TreeMap<>();
        List<String> found = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer consumer = lab.consumer("readers");
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                long took = System.currentTimeMillis() - sentAt.get(Lab.text(message));
                long due = List.of(0, 1000, 5000).get(message.getDelayTimeLevel());
                // A second of grace above, for a machine that is busy; none below.
                found.add((took >= due - 5 && took < due + 4000 ? "in time " : "after " + took + " ms ")
                    + Lab.shown(message));
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        for (int level : new int[] {2, 1, 0}) {
            Message message = lab.message(topic, "level" + level, "level " + level);
            message.setDelayTimeLevel(level);
            message.setKeys("delayed");
            sentAt.put("level " + level, System.currentTimeMillis());
            // Its offset is that in the topic of delayed messages, which others use as well.
            lab.say("level %d: %s", level, lab.producer().send(message, Lab.queue(topic, 0)).getSendStatus());
        }
        Lab.eventually("all three", () -> found.size() >= 3);
        consumer.shutdown();
        // Two that come with one pull go to two threads.
        Collections.sort(found);
        for (String line : found) lab.say("%s", line);
    }

    static void retry(Lab lab) throws Exception {
        String topic = lab.topic(1);
        String group = lab.group("readers");
        List<String> found = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer consumer = lab.consumer("readers");
        consumer.setMaxReconsumeTimes(2);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            found.add(Lab.shown(messages.get(0)));
            context.setDelayLevelWhenNextConsume(1);
            boolean isGood = Lab.text(messages.get(0)).equals("good at second") && messages.get(0).getReconsumeTimes() == 1;
            return isGood ? ConsumeConcurrentlyStatus.CONSUME_SUCCESS : ConsumeConcurrentlyStatus.RECONSUME_LATER;
        });
        consumer.start();
        int tries = 0;
        for (String body : List.of("good at second", "never good")) {
            Message message = lab.message(topic, "T", body);
            message.setKeys("k");
            message.putUserProperty("color", "blue");
            lab.producer().send(message, Lab.queue(topic, 0));
            int expected = tries += tries == 0 ? 2 : 3;
            Lab.eventually("2 and 3 tries", () -> found.size() >= expected);
        }
        for (String line : found) lab.say("%s", line);
        String dead = "%DLQ%" + group;
        Lab.eventually("a dead-letter topic", () -> lab.hasRoute(dead));
        consumer.shutdown();
        var config = lab.admin().examineTopicConfig(lab.broker, dead);
        lab.say("dead-letter topic: %d queues, perm %d", config.getReadQueueNums(), config.getPerm());
        config.setPerm(6);
        lab.admin().createAndUpdateTopicConfig(lab.broker, config);
        lab.say("%s", Lab.shown(lab.drain(dead, 1).get(0)));
        var retried = lab.admin().examineTopicConfig(lab.broker, "%RETRY%" + group);
        lab.say("retry topic: %d queues, perm %d", retried.getReadQueueNums(), retried.getPerm());
        lab.say("in the retry topic: %d", lab.drain("%RETRY%" + group, 3).size());
    }
}
