import java.util.zip.CRC32;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Reads every message of some topics.
 *
 * java PullAll NAME_SERVER TOPIC...   prints "topic queue offset bornTimestamp bytes crc32" each
 */
public class PullAll {
    public static void main(String[] args) throws Exception {
        int status = 1;
        try {
            run(args);
            status = 0;
        } catch (Exception error) {
            error.printStackTrace();
        } finally {
            System.out.flush();
            System.exit(status); // threads of the client would go on
        }
    }

    static void run(String[] args) throws Exception {
        DefaultMQPullConsumer puller = new DefaultMQPullConsumer("pull-all");
        puller.setNamesrvAddr(args[0]);
        puller.setMqClientApiTimeout(20_000);
        puller.start();
        for (int at = 1; at < args.length; at++) {
            for (MessageQueue queue : puller.fetchSubscribeMessageQueues(args[at])) pull(puller, queue);
        }
    }

    static void pull(DefaultMQPullConsumer puller, MessageQueue queue) throws Exception {
        for (long at = puller.minOffset(queue); at < puller.maxOffset(queue); ) {
            PullResult result = puller.pull(queue, "*", at, 32);
            if (result.getPullStatus() == PullStatus.FOUND) {
                for (MessageExt message : result.getMsgFoundList()) {
                    byte[] body = message.getBody() == null ? new byte[0] : message.getBody();
                    CRC32 crc = new CRC32();
                    crc.update(body);
                    System.out.println(queue.getTopic() + " " + message.getQueueId() + " " + message.getQueueOffset()
                        + " " + message.getBornTimestamp() + " " + body.length + " " + crc.getValue());
                }
            }
            at = result.getNextBeginOffset();
        }
    }
}
