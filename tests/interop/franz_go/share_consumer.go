// A share consumer of franz-go: BOOTSTRAP TOPIC GROUP. Prints what it saw.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var bootstrap, topic, group = os.Args[1], os.Args[2], os.Args[3]

func client(options ...kgo.Opt) *kgo.Client {
	made, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(bootstrap)}, options...)...)
	check(err)
	return made
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func prepare(ctx context.Context, cl *kgo.Client) {
	create := kmsg.NewPtrCreateTopicsRequest()
	one := kmsg.NewCreateTopicsRequestTopic()
	one.Topic, one.NumPartitions, one.ReplicationFactor = topic, 2, 1
	create.Topics = append(create.Topics, one)
	_, err := create.RequestWith(ctx, cl)
	check(err)
	alter := kmsg.NewPtrIncrementalAlterConfigsRequest()
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeGroupConfig, group
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name, config.Value = "share.auto.offset.reset", kmsg.StringPtr("earliest")
	resource.Configs = append(resource.Configs, config)
	alter.Resources = append(alter.Resources, resource)
	_, err = alter.RequestWith(ctx, cl)
	check(err)
}

// consume acknowledges as it is told until so many deliveries came.
func consume(ctx context.Context, cl *kgo.Client, count int, status func(*kgo.Record) kgo.AckStatus) {
	var seen []string
	for len(seen) < count && ctx.Err() == nil {
		fetches := cl.PollFetches(ctx)
		fetches.EachError(func(t string, p int32, err error) { fmt.Println("error", t, p, err) })
		fetches.EachRecord(func(r *kgo.Record) {
			seen = append(seen, fmt.Sprintf("%s*%d", r.Value, r.DeliveryCount()))
			r.Ack(status(r))
		})
	}
	sort.Strings(seen)
	fmt.Println(strings.Join(seen, " "))
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	producer := client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	prepare(ctx, producer)
	for i := 0; i < 20; i++ {
		record := &kgo.Record{Topic: topic, Partition: int32(i % 2), Value: []byte(fmt.Sprintf("%02d", i))}
		check(producer.ProduceSync(ctx, record).FirstErr())
	}
	var lock sync.Mutex
	failed := 0
	share := func(options ...kgo.Opt) *kgo.Client {
		return client(append(options, kgo.ConsumeTopics(topic), kgo.ShareGroup(group),
			kgo.ShareAckCallback(func(_ *kgo.Client, results kgo.ShareAckResults) {
				lock.Lock()
				defer lock.Unlock()
				if !results.Ok() {
					failed++
				}
			}))...)
	}
	one := share(kgo.ShareMaxRecords(3), kgo.ShareMaxRecordsStrict())
	consume(ctx, one, 26, func(r *kgo.Record) kgo.AckStatus {
		switch {
		case r.Value[1] == '3' && r.DeliveryCount() < 3:
			return kgo.AckRelease
		case r.Value[1] == '7':
			return kgo.AckReject
		case r.Value[1] == '5' && r.DeliveryCount() < 2:
			return kgo.AckRelease
		}
		return kgo.AckAccept
	})
	one.Close()
	two := share()
	check(producer.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("20")}).FirstErr())
	consume(ctx, two, 1, func(*kgo.Record) kgo.AckStatus { return kgo.AckAccept })
	two.Close()
	lock.Lock()
	fmt.Println("failed", failed)
}
