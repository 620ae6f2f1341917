// The official client of RocketMQ 5 for Go, which speaks gRPC.
//
// To be run as `rocketmq_go_grpc ENDPOINTS`; prints sections as the Java programs do. Topics are
// those of rocketmq_grpc_client.py.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	client "github.com/apache/rocketmq-clients/golang/v5"
	"github.com/apache/rocketmq-clients/golang/v5/credentials"
)

const patience = 60 * time.Second

// mine is the tag of what this program sends: others have sent to the topics, and delayed some.
const mine = "go"

var (
	endpoint   string
	background = context.Background()
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func config(group string) *client.Config {
	return &client.Config{Endpoint: endpoint, ConsumerGroup: group, Credentials: &credentials.SessionCredentials{}}
}

func made(topic, body string) *client.Message {
	one := &client.Message{Topic: topic, Body: []byte(body)}
	one.SetKeys("key-" + body)
	one.SetTag(mine)
	one.AddProperty("color", "blue")
	return one
}

func text(of *string) string {
	if of == nil {
		return ""
	}
	return *of
}

func shown(one *client.MessageView) string {
	return fmt.Sprintf("%s %s %s %v color=%s group=%s attempt=%d", one.GetTopic(), one.GetBody(), text(one.GetTag()),
		one.GetKeys(), one.GetProperties()["color"], text(one.GetMessageGroup()), one.GetDeliveryAttempt())
}

// received returns so many of our messages as they come; each is ended at once.
func received(from client.SimpleConsumer, count int, end func(*client.MessageView) error) []string {
	found := []string{}
	for until := time.Now().Add(patience); len(found) < count && time.Now().Before(until); {
		all, err := from.Receive(background, 16, 15*time.Second)
		if err != nil {
			continue // nothing came while the proxy waited
		}
		for _, one := range all {
			if text(one.GetTag()) != mine {
				must(from.Ack(background, one))
				continue
			}
			must(end(one))
			found = append(found, shown(one))
		}
	}
	return found
}

func acknowledge(from client.SimpleConsumer) func(*client.MessageView) error {
	return func(one *client.MessageView) error { return from.Ack(background, one) }
}

func consumerOf(topic, group string) client.SimpleConsumer {
	one, err := client.NewSimpleConsumer(config(group), client.WithAwaitDuration(5*time.Second),
		client.WithSubscriptionExpressions(map[string]*client.FilterExpression{topic: client.SUB_ALL}))
	must(err)
	must(one.Start())
	return one
}

func producerOf(topic string, more ...client.ProducerOption) client.Producer {
	one, err := client.NewProducer(config(""), append(more, client.WithTopics(topic))...)
	must(err)
	must(one.Start())
	return one
}

// sendAndReceive sees messages come again that were not acknowledged.
func sendAndReceive() []string {
	told := []string{}
	producer, consumer := producerOf("normal"), consumerOf("normal", "go_readers")
	receipts, err := producer.Send(background, made("normal", "a"))
	must(err)
	told = append(told, fmt.Sprint(len(receipts), " ", len(receipts[0].MessageID), " letters"))
	done := make(chan error)
	producer.SendAsync(background, made("normal", "b"), func(_ context.Context, _ []*client.SendReceipt, err error) {
		done <- err
	})
	must(<-done)
	found := received(consumer, 2, func(one *client.MessageView) error {
		if string(one.GetBody()) == "a" {
			return consumer.Ack(background, one)
		}
		return consumer.ChangeInvisibleDuration(one, 10*time.Second)
	})
	sort.Strings(found)
	told = append(told, found...)
	told = append(told, received(consumer, 1, acknowledge(consumer))...)
	must(consumer.GracefulStop())
	must(producer.GracefulStop())
	return told
}

// inOrder receives a group's messages one after the other. The group is its own: polls of another client that has
// left it may still wait at a proxy, and each takes a delivery.
func inOrder() []string {
	producer, consumer := producerOf("fifo"), consumerOf("fifo", "go_in_order")
	for number := 0; number < 4; number++ {
		one := made("fifo", fmt.Sprint(number))
		one.SetMessageGroup("g")
		_, err := producer.Send(background, one)
		must(err)
	}
	told := received(consumer, 4, acknowledge(consumer))
	must(consumer.GracefulStop())
	must(producer.GracefulStop())
	return told
}

// later receives a message when it is due.
func later() []string {
	producer, consumer := producerOf("delay"), consumerOf("delay", "go_later")
	due := time.Now().Add(4 * time.Second)
	one := made("delay", "due")
	one.SetDelayTimestamp(due)
	_, err := producer.Send(background, one)
	must(err)
	told := received(consumer, 1, acknowledge(consumer))
	told = append(told, fmt.Sprint("in time: ", time.Now().Unix() >= due.Unix()))
	must(consumer.GracefulStop())
	must(producer.GracefulStop())
	return told
}

// transactions sees what was committed, at once or when it was asked.
func transactions() []string {
	checker := &client.TransactionChecker{Check: func(*client.MessageView) client.TransactionResolution {
		return client.COMMIT
	}}
	producer := producerOf("transaction", client.WithTransactionChecker(checker))
	consumer := consumerOf("transaction", "go_transactions")
	for _, body := range []string{"committed", "rolled back", "forgotten"} {
		transaction := producer.BeginTransaction()
		_, err := producer.SendWithTransaction(background, made("transaction", body), transaction)
		must(err)
		switch body {
		case "committed":
			must(transaction.Commit())
		case "rolled back":
			must(transaction.RollBack())
		}
	}
	told := received(consumer, 2, acknowledge(consumer))
	sort.Strings(told)
	must(consumer.GracefulStop())
	must(producer.GracefulStop())
	return told
}

// refused tells what cannot be sent, and by which code.
func refused() []string {
	told := []string{}
	for _, topic := range []string{"nobody_made_it", "fifo", "delay", "transaction"} {
		one, err := client.NewProducer(config(""), client.WithMaxAttempts(1))
		must(err)
		must(one.Start())
		_, err = one.Send(background, made(topic, "x"))
		var status *client.ErrRpcStatus
		if errors.As(err, &status) {
			told = append(told, fmt.Sprint(topic, " ", status.GetCode(), " ", status.GetMessage()))
		} else {
			told = append(told, fmt.Sprint(topic, " ", err))
		}
		must(one.GracefulStop())
	}
	return told
}

func main() {
	endpoint = os.Args[1]
	os.Setenv("rocketmq.client.logLevel", "error")
	client.ResetLogger()
	scenarios := []struct {
		name string
		run  func() []string
	}{
		{"received", sendAndReceive}, {"in order", inOrder}, {"later", later}, {"transactions", transactions},
		{"refused", refused},
	}
	found := make([][]string, len(scenarios))
	var all sync.WaitGroup
	for number, one := range scenarios {
		all.Add(1)
		go func() {
			defer all.Done()
			defer func() {
				if reason := recover(); reason != nil {
					found[number] = append(found[number], fmt.Sprint("!! ", reason))
				}
			}()
			found[number] = one.run()
		}()
	}
	all.Wait()
	for number, one := range scenarios {
		fmt.Println("== " + one.name)
		fmt.Println(strings.Join(found[number], "\n"))
	}
}
