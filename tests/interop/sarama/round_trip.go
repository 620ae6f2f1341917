// What a user of sarama does, told line by line: topics, idempotent and transactional producers,
// a consumer group that commits, and the questions of an administrator.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sort"
	"time"

	"github.com/IBM/sarama"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func settings() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	config.Consumer.Offsets.AutoCommit.Enable = false
	return config
}

func produce(addresses []string, topic string) {
	for _, codec := range []sarama.CompressionCodec{
		sarama.CompressionNone, sarama.CompressionGZIP, sarama.CompressionSnappy,
		sarama.CompressionLZ4, sarama.CompressionZSTD,
	} {
		config := settings()
		config.Producer.Compression = codec
		producer, err := sarama.NewSyncProducer(addresses, config)
		must(err)
		for number := range 2 {
			partition, offset, err := producer.SendMessage(&sarama.ProducerMessage{
				Topic: topic,
				Key:   sarama.StringEncoder(fmt.Sprint("k", number)),
				Value: sarama.StringEncoder(fmt.Sprint(codec, number)),
				Headers: []sarama.RecordHeader{
					{Key: []byte("h"), Value: []byte("v")},
				},
			})
			must(err)
			fmt.Println("sent", codec, number, partition, offset)
		}
		must(producer.Close())
	}
}

func transact(addresses []string, topic string) {
	config := settings()
	config.Producer.Transaction.ID = topic + "-transactions"
	producer, err := sarama.NewSyncProducer(addresses, config)
	must(err)
	for _, isKept := range []bool{true, false, true} {
		must(producer.BeginTxn())
		for number := range 2 {
			_, _, err := producer.SendMessage(&sarama.ProducerMessage{
				Topic: topic,
				Key:   sarama.StringEncoder(fmt.Sprint("k", number)),
				Value: sarama.StringEncoder(fmt.Sprint("kept ", isKept, number)),
			})
			must(err)
		}
		must(producer.AddOffsetsToTxn(map[string][]*sarama.PartitionOffsetMetadata{
			topic: {{Partition: 0, Offset: 1}},
		}, topic+"-moved"))
		if isKept {
			must(producer.CommitTxn())
		} else {
			must(producer.AbortTxn())
		}
		fmt.Println("transaction ended", isKept)
	}
	must(producer.Close())
}

type handler struct{ seen chan string }

func (handler) Setup(session sarama.ConsumerGroupSession) error {
	fmt.Println("assigned", session.Claims())
	return nil
}

func (handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (one handler) ConsumeClaim(
	session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) error {
	for {
		select {
		case message, isOpen := <-claim.Messages():
			if !isOpen {
				return nil
			}
			one.seen <- fmt.Sprintf("%d %d %s %s %d", message.Partition, message.Offset,
				message.Key, message.Value, len(message.Headers))
			session.MarkMessage(message, "so far")
			session.Commit()
		case <-session.Context().Done():
			return nil
		}
	}
}

func consume(addresses []string, topic string, count int) {
	group, err := sarama.NewConsumerGroup(addresses, topic+"-group", settings())
	must(err)
	context, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	seen := make(chan string)
	done := make(chan error)
	go func() { done <- group.Consume(context, []string{topic}, handler{seen: seen}) }()
	lines := []string{}
	for len(lines) < count {
		select {
		case line := <-seen:
			lines = append(lines, line)
		case <-context.Done():
			log.Fatal("not all came: ", lines)
		}
	}
	cancel()
	must(<-done)
	must(group.Close())
	sort.Strings(lines)
	for _, line := range lines {
		fmt.Println("got", line)
	}
}

func ask(addresses []string, topic string) {
	admin, err := sarama.NewClusterAdmin(addresses, settings())
	must(err)
	offsets, err := admin.ListConsumerGroupOffsets(topic+"-group", nil)
	must(err)
	for partition := range int32(2) {
		block := offsets.GetBlock(topic, partition)
		fmt.Println("committed", partition, block.Offset, block.Metadata, block.Err)
	}
	moved, err := admin.ListConsumerGroupOffsets(topic+"-moved", map[string][]int32{topic: {0, 1}})
	must(err)
	fmt.Println("moved", moved.GetBlock(topic, 0).Offset, moved.GetBlock(topic, 1).Offset)
	groups, err := admin.DescribeConsumerGroups([]string{topic + "-group"})
	must(err)
	fmt.Println("group", groups[0].State, groups[0].ProtocolType, len(groups[0].Members))
	value := "123456"
	must(admin.IncrementalAlterConfig(sarama.TopicResource, topic,
		map[string]sarama.IncrementalAlterConfigsEntry{
			"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value},
		}, false))
	must(admin.CreatePartitions(topic, 3, nil, false))
	must(admin.DeleteRecords(topic, map[int32]int64{0: 1}))
	// A real broker knows of it a little later than its controller.
	for range 200 {
		entries, err := admin.DescribeConfig(sarama.ConfigResource{
			Type: sarama.TopicResource, Name: topic, ConfigNames: []string{"retention.ms"},
		})
		must(err)
		topics, err := admin.DescribeTopics([]string{topic})
		must(err)
		if entries[0].Value == value && len(topics[0].Partitions) == 3 {
			fmt.Println("changed", entries[0].Name, entries[0].Value, entries[0].Source)
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	client, err := sarama.NewClient(addresses, settings())
	must(err)
	for _, when := range []int64{sarama.OffsetOldest, sarama.OffsetNewest} {
		offset, err := client.GetOffset(topic, 0, when)
		must(err)
		fmt.Println("offset", when, offset)
	}
	must(client.Close())
	must(admin.DeleteConsumerGroup(topic + "-group"))
	must(admin.DeleteTopic(topic))
	must(admin.Close())
	fmt.Println("all deleted")
}

func main() {
	addresses, topic := []string{os.Args[1]}, os.Args[2]
	admin, err := sarama.NewClusterAdmin(addresses, settings())
	must(err)
	kind := "producer"
	must(admin.CreateTopic(topic, &sarama.TopicDetail{
		NumPartitions: 2, ReplicationFactor: 1,
		ConfigEntries: map[string]*string{"compression.type": &kind},
	}, false))
	err = admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false)
	fmt.Println("there already", errors.Is(err, sarama.ErrTopicAlreadyExists))
	must(admin.Close())
	produce(addresses, topic)
	transact(addresses, topic)
	consume(addresses, topic, 10+4)
	ask(addresses, topic)
}
