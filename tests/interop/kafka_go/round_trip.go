// What a user of kafka-go does, told line by line: a writer of each codec, readers of a group that
// commit, a reader that seeks by time, and the questions of its client.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"sort"
	"time"

	"github.com/segmentio/kafka-go"
)

var codecs = []kafka.Compression{0, kafka.Gzip, kafka.Snappy, kafka.Lz4, kafka.Zstd}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func write(ctx context.Context, address, topic string, begin time.Time) {
	for turn, codec := range codecs {
		writer := kafka.Writer{
			Addr: kafka.TCP(address), Topic: topic, Balancer: &kafka.Hash{},
			RequiredAcks: kafka.RequireAll, Compression: codec, BatchTimeout: time.Millisecond,
		}
		messages := []kafka.Message{}
		for number := range 4 {
			messages = append(messages, kafka.Message{
				Key:     fmt.Append(nil, "k", number),
				Value:   fmt.Append(nil, codec, number),
				Headers: []kafka.Header{{Key: "h", Value: []byte("v")}},
				Time:    begin.Add(time.Duration(turn) * time.Second),
			})
		}
		must(writer.WriteMessages(ctx, messages...))
		must(writer.Close())
	}
}

func readTogether(ctx context.Context, address, topic string) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{address}, GroupID: topic + "-group", Topic: topic,
		StartOffset: kafka.FirstOffset, MaxWait: 100 * time.Millisecond,
	})
	lines := []string{}
	for range 4 * len(codecs) {
		message, err := reader.FetchMessage(ctx)
		must(err)
		must(reader.CommitMessages(ctx, message))
		lines = append(lines, fmt.Sprintf("%d %02d %s %s %d", message.Partition, message.Offset,
			message.Key, message.Value, len(message.Headers)))
	}
	must(reader.Close())
	sort.Strings(lines)
	for _, line := range lines {
		fmt.Println("got", line)
	}
}

func readByTime(ctx context.Context, address, topic string, begin time.Time) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{address}, Topic: topic, Partition: 0, MaxWait: 100 * time.Millisecond,
	})
	must(reader.SetOffsetAt(ctx, begin.Add(2*time.Second)))
	message, err := reader.ReadMessage(ctx)
	must(err)
	lag, err := reader.ReadLag(ctx)
	must(err)
	fmt.Println("by time", message.Offset, string(message.Value), lag)
	must(reader.Close())
	connection, err := kafka.DialLeader(ctx, "tcp", address, topic, 0)
	must(err)
	first, last, err := connection.ReadOffsets()
	must(err)
	fmt.Println("offsets", first, last)
	batch := connection.ReadBatch(1, 1_000_000)
	count := 0
	for ; ; count++ {
		if _, err := batch.ReadMessage(); err != nil {
			fmt.Println("read", count, err == io.EOF || ctx.Err() == nil)
			break
		}
	}
	batch.Close()
	must(connection.Close())
}

func ask(ctx context.Context, client *kafka.Client, topic string) {
	offsets, err := client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{
		GroupID: topic + "-group", Topics: map[string][]int{topic: {0, 1}},
	})
	must(err)
	for _, one := range offsets.Topics[topic] {
		fmt.Println("committed", one.Partition, one.CommittedOffset, one.Error)
	}
	listed, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{
			topic: {kafka.FirstOffsetOf(0), kafka.LastOffsetOf(0), kafka.LastOffsetOf(1)},
		},
	})
	must(err)
	for _, one := range listed.Topics[topic] {
		fmt.Println("ends", one.Partition, one.FirstOffset, one.LastOffset, one.Error)
	}
	groups, err := client.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{
		GroupIDs: []string{topic + "-group"},
	})
	must(err)
	fmt.Println("group", groups.Groups[0].GroupState, len(groups.Groups[0].Members))
	altered, err := client.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
			Configs: []kafka.IncrementalAlterConfigsRequestConfig{{
				Name: "retention.ms", Value: "123456", ConfigOperation: kafka.ConfigOperationSet,
			}},
		}},
	})
	must(err)
	fmt.Println("altered", altered.Resources[0].Error)
	// Its InitProducerID and EndTxn are as old as Kafka 0.11.
	var made *kafka.InitProducerIDResponse
	for range 200 { // a real coordinator has to be there first
		made, err = client.InitProducerID(ctx, &kafka.InitProducerIDRequest{
			TransactionalID: topic + "-x", TransactionTimeoutMs: 60_000,
		})
		must(err)
		if made.Error == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	fmt.Println("producer", made.Producer.ProducerEpoch, made.Error)
	added, err := client.AddPartitionsToTxn(ctx, &kafka.AddPartitionsToTxnRequest{
		TransactionalID: topic + "-x", ProducerID: made.Producer.ProducerID,
		ProducerEpoch: made.Producer.ProducerEpoch,
		Topics:        map[string][]kafka.AddPartitionToTxn{topic: {{Partition: 0}}},
	})
	must(err)
	ended, err := client.EndTxn(ctx, &kafka.EndTxnRequest{
		TransactionalID: topic + "-x", ProducerID: made.Producer.ProducerID,
		ProducerEpoch: made.Producer.ProducerEpoch, Committed: true,
	})
	must(err)
	fmt.Println("ended", added.Topics[topic][0].Error, ended.Error)
	deleted, err := client.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{
		GroupIDs: []string{topic + "-group", "nobody"},
	})
	must(err)
	fmt.Println("deleted", deleted.Errors[topic+"-group"], deleted.Errors["nobody"])
	gone, err := client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic, "no"}})
	must(err)
	fmt.Println("gone", gone.Errors[topic], gone.Errors["no"])
}

func main() {
	address, topic := os.Args[1], os.Args[2]
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	client := &kafka.Client{Addr: kafka.TCP(address), Timeout: 20 * time.Second}
	created, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: 2, ReplicationFactor: 1}},
	})
	must(err)
	fmt.Println("created", created.Errors[topic])
	// A real broker knows of it a little later than its controller.
	for range 200 {
		found, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
		must(err)
		if found.Topics[0].Error == nil && len(found.Topics[0].Partitions) == 2 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	begin := time.UnixMilli(1_700_000_000_000)
	write(ctx, address, topic, begin)
	readTogether(ctx, address, topic)
	readByTime(ctx, address, topic, begin)
	ask(ctx, client, topic)
}
