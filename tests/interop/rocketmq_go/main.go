// RocketMQ's Go client of the remoting protocol, in all its ways to send and to consume.
//
// To be run as `rocketmq_go NAME_SERVER BROKER`; prints sections, as the Java programs do.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

const patience = 60 * time.Second

var (
	nameServer, broker string
	background         = context.Background()
)

// section gathers the lines of one scenario, which may come from several goroutines.
type section struct {
	sync.Mutex
	lines []string
}

func (s *section) say(format string, about ...any) {
	s.Lock()
	defer s.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, about...))
}

func (s *section) count() int {
	s.Lock()
	defer s.Unlock()
	return len(s.lines)
}

// wait returns once there are so many lines, or patience is over.
func (s *section) wait(count int) {
	for end := time.Now().Add(patience); s.count() < count && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	if s.count() < count {
		s.say("!! only %d of %d came", s.count(), count)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func resolver() primitive.NsResolver {
	return primitive.NewPassthroughResolver([]string{nameServer})
}

func newTopic(name string, queues int) {
	one, err := admin.NewAdmin(admin.WithResolver(resolver()))
	must(err)
	must(one.CreateTopic(background, admin.WithTopicCreate(name), admin.WithBrokerAddrCreate(broker),
		admin.WithReadQueueNums(queues), admin.WithWriteQueueNums(queues)))
	known(name, queues)
}

// known returns once the name server knows the topic.
func known(name string, queues int) {
	one, err := admin.NewAdmin(admin.WithResolver(resolver()))
	must(err)
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		found, err := one.FetchPublishMessageQueues(background, name)
		if err == nil && len(found) == queues {
			return
		}
		if time.Now().After(end) {
			panic(fmt.Sprint("no route to ", name, " ", err))
		}
	}
}

// started returns a running producer of a name of its own.
func started(name string, more ...producer.Option) rocketmq.Producer {
	options := []producer.Option{
		producer.WithNsResolver(resolver()), producer.WithGroupName("p_" + name),
		producer.WithInstanceName("p_" + name), producer.WithRetry(2),
		producer.WithSendMsgTimeout(20 * time.Second),
		producer.WithQueueSelector(producer.NewManualQueueSelector()),
	}
	one, err := rocketmq.NewProducer(append(options, more...)...)
	must(err)
	must(one.Start())
	return one
}

// at returns a message for a queue of the topic.
func at(topic string, queue int, body string) *primitive.Message {
	one := primitive.NewMessage(topic, []byte(body))
	one.Queue = &primitive.MessageQueue{Topic: topic, BrokerName: "broker-a", QueueId: queue}
	return one
}

func sent(result *primitive.SendResult, err error) string {
	if err != nil {
		return "!! " + err.Error()
	}
	return fmt.Sprintf("status %d queue %d offset %d", result.Status, result.MessageQueue.QueueId, result.QueueOffset)
}

func shown(one *primitive.MessageExt) string {
	body := string(one.Body)
	if len(body) > 40 {
		body = fmt.Sprintf("%d bytes", len(body))
	}
	return fmt.Sprintf("%s %d@%d tags=%s keys=%s color=%s times=%d %s", one.Topic, one.QueueOffset,
		one.Queue.QueueId, one.GetTags(), one.GetKeys(), one.GetProperty("color"), one.ReconsumeTimes, body)
}

type listener func(context.Context, ...*primitive.MessageExt) (consumer.ConsumeResult, error)

// pushed returns a running push consumer that reads from the beginning.
func pushed(name, topic string, selector consumer.MessageSelector, does listener, more ...consumer.Option) rocketmq.PushConsumer {
	options := []consumer.Option{
		consumer.WithNsResolver(resolver()), consumer.WithGroupName("g_" + name),
		consumer.WithInstance("c_" + name), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	}
	one, err := rocketmq.NewPushConsumer(append(options, more...)...)
	must(err)
	must(one.Subscribe(topic, selector, does))
	must(one.Start())
	return one
}

// saying returns a listener that tells what comes.
func saying(into *section) listener {
	return func(_ context.Context, all ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, one := range all {
			into.say("%s", shown(one))
		}
		return consumer.ConsumeSuccess, nil
	}
}

var everything = consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}

type scenario struct {
	name string
	run  func(*section)
}

func main() {
	nameServer, broker = os.Args[1], os.Args[2]
	rlog.SetLogLevel("fatal")
	wanted := map[string]bool{}
	for _, name := range os.Args[3:] {
		wanted[name] = true
	}
	var all sync.WaitGroup
	found := make([]*section, len(scenarios))
	for number, one := range scenarios {
		if len(wanted) > 0 && !wanted[one.name] {
			continue
		}
		found[number] = &section{}
		all.Add(1)
		go func() {
			defer all.Done()
			defer func() {
				if reason := recover(); reason != nil {
					found[number].say("!! %v", reason)
				}
			}()
			one.run(found[number])
		}()
	}
	all.Wait()
	for number, one := range found {
		if one != nil {
			fmt.Println("== " + scenarios[number].name)
			fmt.Println(strings.Join(one.lines, "\n"))
		}
	}
}

// sorted brings lines that come in no order into one.
func (s *section) sorted() {
	s.Lock()
	defer s.Unlock()
	sort.Strings(s.lines)
}
