import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Sends of every kind, and what the broker keeps of them. */
final class Producing {
    private Producing() {}

    static void sent(Lab lab, String what, SendResult result) {
        lab.say("%s: %s queue %d offset %d ids %d", what, result.getSendStatus(),
            result.getMessageQueue().getQueueId(), result.getQueueOffset(),
            result.getOffsetMsgId() == null ? 0 : result.getOffsetMsgId().split(",").length);
    }

    static void produce(Lab lab) throws Exception {
        String topic = lab.topic(4);
        DefaultMQProducer producer = lab.producer();
        for (int n = 0; n < 4; n++) {
            sent(lab, "sync", producer.send(lab.message(topic, "A", "sync " + n), Lab.queue(topic, n)));
        }
        Message rich = new Message(topic, "标签", "one two", 7, "größer ☃".getBytes("UTF-8"), true);
        rich.putUserProperty("color", "blue");
        rich.putUserProperty("名", "值");
        sent(lab, "rich", producer.send(rich, Lab.queue(topic, 0)));
        sent(lab, "one byte", producer.send(lab.message(topic, "", "x"), Lab.queue(topic, 0)));
        Message unwaited = lab.message(topic, "A", "not waited for");
        unwaited.setWaitStoreMsgOK(false);
        sent(lab, "unwaited", producer.send(unwaited, Lab.queue(topic, 0)));
        sent(lab, "long", producer.send(new Message(topic, "long", new byte[100_000]), Lab.queue(topic, 1)));
        sent(lab, "selected", producer.send(lab.message(topic, "S", "selected"),
            (queues, message, argument) -> queues.get((Integer) argument % queues.size()), 2));
        CountDownLatch answered = new CountDownLatch(10);
        List<String> told = Collections.synchronizedList(new ArrayList<>());
        for (int n = 0; n < 10; n++) {
            producer.send(lab.message(topic, "async", "async " + n), Lab.queue(topic, 3), new SendCallback() {
                public void onSuccess(SendResult result) {
                    told.add(result.getSendStatus() + " " + result.getQueueOffset());
                    answered.countDown();
                }

                public void onException(Throwable error) {
                    lab.failed(error);
                    answered.countDown();
                }
            });
        }
        answered.await();
        Collections.sort(told);
        lab.say("async: %s", told);
        producer.sendOneway(lab.message(topic, "oneway", "one way"), Lab.queue(topic, 2));
        List<MessageExt> found = lab.drain(topic, 20);
        List<String> async = new ArrayList<>();
        for (MessageExt message : found) {
            if ("async".equals(message.getTags())) {
                async.add(Lab.text(message)); // several threads send these: in any order
            } else {
                lab.say("%s size=%d", Lab.shown(message), message.getStoreSize());
            }
        }
        Collections.sort(async);
        lab.say("%s", async);
    }

    static void batch(Lab lab) throws Exception {
        String topic = lab.topic(2);
        List<Message> messages = new ArrayList<>();
        for (int n = 0; n < 5; n++) {
            Message message = lab.message(topic, n % 2 == 0 ? "even" : "odd", "batched " + n);
            message.setKeys("key" + n);
            message.putUserProperty("n", "" + n);
            messages.add(message);
        }
        sent(lab, "five", lab.producer().send(messages, Lab.queue(topic, 1)));
        List<Message> many = new ArrayList<>();
        for (int n = 0; n < 300; n++) many.add(lab.message(topic, "many", "of many " + n));
        sent(lab, "many", lab.producer().send(many, Lab.queue(topic, 1)));
        sent(lab, "one", lab.producer().send(List.of(lab.message(topic, "", "alone")), Lab.queue(topic, 0)));
        List<MessageExt> found = lab.drain(topic, 306);
        lab.say("%d found", found.size());
        for (MessageExt message : found) {
            if (message.getQueueOffset() < 7 || message.getQueueOffset() > 300) {
                lab.say("%s size=%d", Lab.shown(message), message.getStoreSize());
            }
        }
        Lab.eventually("the index", () ->
            lab.puller().queryMessage(topic, "key3", 8, 0, Long.MAX_VALUE).getMessageList().size() == 1);
    }

    /** What a broker says no to, and a topic that it makes by itself. */
    static void refused(Lab lab) throws Exception {
        DefaultMQProducer producer = lab.producer();
        String topic = lab.topic(2);
        lab.refused("no such queue", () -> producer.send(lab.message(topic, "", "x"), Lab.queue(topic, 9)).getSendStatus());
        lab.refused("empty", () -> producer.send(new Message(topic, new byte[0])));
        lab.refused("bad name", () -> producer.send(lab.message("no/such/name", "", "x")));
        lab.refused("system topic", () -> producer.send(lab.message("SCHEDULE_TOPIC_XXXX", "", "x")));
        String closed = lab.topic("closed", 2);
        lab.admin().createAndUpdateTopicConfig(lab.broker, new TopicConfig(closed, 2, 2, 4));
        lab.refused("not writable", () -> producer.send(lab.message(closed, "", "x"), Lab.queue(closed, 0)).getSendStatus());
        lab.admin().createAndUpdateTopicConfig(lab.broker, new TopicConfig(closed, 2, 2, 2));
        lab.refused("not readable", () -> lab.puller().pull(Lab.queue(closed, 0), "*", 0, 1).getPullStatus());
        lab.refused("bad queue", () -> lab.puller().pull(Lab.queue(topic, 7), "*", 0, 1).getPullStatus());
        lab.refused("no topic", () -> lab.puller().fetchSubscribeMessageQueues("never-made"));
        String made = lab.prefix + "_made_by_sending";
        producer.setDefaultTopicQueueNums(3);
        SendResult result = producer.send(lab.message(made, "", "made"));
        lab.say("made: %s offset %d", result.getSendStatus(), result.getQueueOffset());
        Lab.eventually("a route", () -> lab.hasRoute(made));
        lab.say("queues: %d", lab.puller().fetchSubscribeMessageQueues(made).size());
        for (MessageExt message : lab.drain(made, 1)) lab.say("%s", Lab.text(message));
    }
}
