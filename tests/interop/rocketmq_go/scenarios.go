package main

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

var scenarios = []scenario{
	{"sent", sending}, {"filtered", filtering}, {"delayed", delaying}, {"in order", ordering},
	{"broadcast", broadcasting}, {"retried", retrying}, {"pulled", pulling}, {"polled", polling},
	{"transactions", transacting}, {"answered", answering}, {"shared", sharing},
	{"namespace", namespacing}, {"traced", tracing}, {"administered", administering},
}

// sending sends in every way, and reads it all.
func sending(to *section) {
	newTopic("go_sent", 2)
	one := started("sent", producer.WithCompressMsgBodyOverHowmuch(2000), producer.WithCompressLevel(9))
	for number := 0; number < 3; number++ {
		message := at("go_sent", number%2, fmt.Sprintf("sync %d", number))
		message.WithTag("t").WithKeys([]string{"a", "b"}).WithProperty("color", "blue")
		to.say("%s", sent(one.SendSync(background, message)))
	}
	done := make(chan string)
	must(one.SendAsync(background, func(_ context.Context, result *primitive.SendResult, err error) {
		done <- sent(result, err)
	}, at("go_sent", 0, "async")))
	to.say("%s", <-done)
	must(one.SendOneWay(background, at("go_sent", 1, "oneway")))
	for end := time.Now().Add(patience); time.Now().Before(end); { // it is there before what follows
		if result, err := one.SendSync(background, at("go_sent_end", 0, "end")); err == nil && result != nil {
			break
		}
	}
	to.say("%s", sent(one.SendSync(background, at("go_sent", 0, strings.Repeat("large ", 1000)))))
	batch := []*primitive.Message{}
	for number := 0; number < 4; number++ {
		batch = append(batch, at("go_sent", 0, fmt.Sprintf("batch %d", number)).WithTag("b"))
	}
	to.say("%s", sent(one.SendSync(background, batch...)))
	to.say("%s", sent(one.SendSync(background, at("go_sent", 0, strings.Repeat("x", 900_000)))))
	must(one.Shutdown())
	told := &section{}
	reader := pushed("sent", "go_sent", everything, saying(told))
	told.wait(11)
	must(reader.Shutdown())
	told.sorted()
	to.lines = append(to.lines, told.lines...)
}

// filtering lets the broker choose by tags and by SQL.
func filtering(to *section) {
	newTopic("go_filtered", 1)
	one := started("filtered")
	for number := 0; number < 8; number++ {
		message := at("go_filtered", 0, fmt.Sprintf("m%d", number)).WithTag(fmt.Sprintf("t%d", number%4))
		message.WithProperty("number", fmt.Sprint(number))
		_, err := one.SendSync(background, message)
		must(err)
	}
	byTag, bySQL := &section{}, &section{}
	first := pushed("by_tag", "go_filtered",
		consumer.MessageSelector{Type: consumer.TAG, Expression: "t1 || t3"}, saying(byTag))
	second := pushed("by_sql", "go_filtered",
		consumer.MessageSelector{Type: consumer.SQL92, Expression: "number > 5 OR TAGS = 't0'"}, saying(bySQL))
	byTag.wait(4)
	bySQL.wait(4)
	must(first.Shutdown())
	must(second.Shutdown())
	must(one.Shutdown())
	byTag.sorted()
	bySQL.sorted()
	to.lines = append(byTag.lines, bySQL.lines...)
}

// delaying gives messages a level of delay.
func delaying(to *section) {
	newTopic("go_delayed", 1)
	told := &section{}
	born := map[string]time.Time{}
	var guard sync.Mutex
	reader := pushed("delayed", "go_delayed", everything,
		func(_ context.Context, all ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			for _, one := range all {
				guard.Lock()
				body := string(one.Body)
				isEarly := body != "level 0" && time.Since(born[body]) < 950*time.Millisecond
				told.say("%s early=%v", body, isEarly)
				guard.Unlock()
			}
			return consumer.ConsumeSuccess, nil
		})
	one := started("delayed")
	for level := 0; level < 2; level++ {
		body := fmt.Sprint("level ", level)
		guard.Lock()
		born[body] = time.Now()
		guard.Unlock()
		_, err := one.SendSync(background, at("go_delayed", 0, body).WithDelayTimeLevel(level))
		must(err)
	}
	told.wait(2)
	told.sorted()
	must(reader.Shutdown())
	must(one.Shutdown())
	to.lines = told.lines
}

// ordering consumes queues in order, and holds one up where its message is not taken.
func ordering(to *section) {
	newTopic("go_ordered", 2)
	one := started("ordered")
	for number := 0; number < 12; number++ {
		_, err := one.SendSync(background, at("go_ordered", number%2, fmt.Sprintf("m%02d", number)))
		must(err)
	}
	told := &section{}
	var refused atomic.Int32
	reader := pushed("ordered", "go_ordered", everything,
		func(_ context.Context, all ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			for _, one := range all {
				if string(one.Body) == "m04" && refused.Add(1) < 3 {
					return consumer.SuspendCurrentQueueAMoment, nil
				}
				told.say("queue %d %s", one.Queue.QueueId, one.Body)
			}
			return consumer.ConsumeSuccess, nil
		}, consumer.WithConsumerOrder(true), consumer.WithSuspendCurrentQueueTimeMillis(20*time.Millisecond))
	told.wait(12)
	must(reader.Shutdown())
	must(one.Shutdown())
	sort.SliceStable(told.lines, func(a, b int) bool { return told.lines[a][:7] < told.lines[b][:7] })
	to.lines = append(told.lines, fmt.Sprint("refused ", refused.Load()-1))
}

// broadcasting has two consumers of a group read everything each.
func broadcasting(to *section) {
	newTopic("go_broadcast", 2)
	one := started("broadcast")
	for number := 0; number < 4; number++ {
		_, err := one.SendSync(background, at("go_broadcast", number%2, fmt.Sprint("m", number)))
		must(err)
	}
	told := [2]*section{{}, {}}
	readers := []rocketmq.PushConsumer{}
	for number, into := range told {
		readers = append(readers, pushed("broadcast", "go_broadcast", everything, saying(into),
			consumer.WithConsumerModel(consumer.BroadCasting), consumer.WithInstance(fmt.Sprint("b", number))))
	}
	for number, into := range told {
		into.wait(4)
		into.sorted()
		to.lines = append(to.lines, into.lines...)
		must(readers[number].Shutdown())
	}
	must(one.Shutdown())
}

// retrying gives a message back until it is a dead letter.
func retrying(to *section) {
	newTopic("go_retried", 1)
	newTopic("%RETRY%g_retried", 1) // a real broker tells of it late, and the client asks every 20 s
	one := started("retried")
	for _, body := range []string{"good", "bad"} {
		_, err := one.SendSync(background, at("go_retried", 0, body).WithKeys([]string{"k"}))
		must(err)
	}
	must(one.Shutdown())
	reader := pushed("retried", "go_retried", everything,
		func(about context.Context, all ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			for _, one := range all {
				to.say("%s %s times=%d real=%s", one.Topic, one.Body, one.ReconsumeTimes,
					one.GetProperty(primitive.PropertyRetryTopic))
				if string(one.Body) == "bad" {
					if now, ok := primitive.GetConcurrentlyCtx(about); ok {
						now.DelayLevelWhenNextConsume = 1
					}
					return consumer.ConsumeRetryLater, nil
				}
			}
			return consumer.ConsumeSuccess, nil
		}, consumer.WithMaxReconsumeTimes(2), consumer.WithConsumeMessageBatchMaxSize(1))
	to.wait(4)
	known("%DLQ%g_retried", 1) // what is said is not given up yet
	must(reader.Shutdown())
	dead := &section{}
	grave := pushed("dead", "%DLQ%g_retried", everything, saying(dead))
	dead.wait(1)
	must(grave.Shutdown())
	to.sorted()
	to.lines = append(to.lines, dead.lines...)
}

// pulling asks queues for messages by offset, and keeps its own place.
func pulling(to *section) {
	newTopic("go_pulled", 1)
	one := started("pulled")
	for number := 0; number < 6; number++ {
		_, err := one.SendSync(background, at("go_pulled", 0, fmt.Sprint("m", number)).WithTag(fmt.Sprint("t", number%2)))
		must(err)
	}
	must(one.Shutdown())
	reader, err := rocketmq.NewPullConsumer(consumer.WithNsResolver(resolver()), consumer.WithGroupName("g_pulled"),
		consumer.WithInstance("c_pulled"), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	must(err)
	must(reader.Subscribe("go_pulled", consumer.MessageSelector{Type: consumer.TAG, Expression: "t0"}))
	must(reader.Start())
	queue := &primitive.MessageQueue{Topic: "go_pulled", BrokerName: "broker-a", QueueId: 0}
	for _, offset := range []int64{0, 3, 5, 99} {
		result, err := reader.PullFrom(background, queue, offset, 2)
		if err != nil {
			to.say("!! %v", err)
			continue
		}
		to.say("status %d next %d of %d-%d, %d messages", result.Status, result.NextBeginOffset, result.MinOffset,
			result.MaxOffset, len(result.GetMessageExts()))
		for _, one := range result.GetMessageExts() {
			to.say("%s", shown(one))
		}
	}
	now := int64(-1)
	for end := time.Now().Add(patience); now != 4 && time.Now().Before(end); { // it pulls by itself, too
		must(reader.UpdateOffset(queue, 4))
		must(reader.PersistOffset(background, "go_pulled"))
		now, err = reader.CurrentOffset(queue)
	}
	to.say("at %d %v", now, err)
	must(reader.Shutdown())
}

// polling takes what comes from all queues, and acknowledges it.
func polling(to *section) {
	newTopic("go_polled", 2)
	one := started("polled")
	for number := 0; number < 6; number++ {
		_, err := one.SendSync(background, at("go_polled", number%2, fmt.Sprint("m", number)))
		must(err)
	}
	must(one.Shutdown())
	reader, err := rocketmq.NewPullConsumer(consumer.WithNsResolver(resolver()), consumer.WithGroupName("g_polled"),
		consumer.WithInstance("c_polled"), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	must(err)
	must(reader.Subscribe("go_polled", everything))
	must(reader.Start())
	for end := time.Now().Add(patience); to.count() < 6 && time.Now().Before(end); {
		found, err := reader.Poll(background, 5*time.Second)
		if consumer.IsNoNewMsgError(err) {
			continue
		}
		must(err)
		for _, one := range found.GetMsgList() {
			to.say("%s", shown(one))
		}
		reader.ACK(background, found, consumer.ConsumeSuccess)
	}
	to.sorted()
	must(reader.Shutdown())
}

type decisions struct{ asked sync.Map }

func (d *decisions) ExecuteLocalTransaction(one *primitive.Message) primitive.LocalTransactionState {
	switch string(one.Body) {
	case "commit":
		return primitive.CommitMessageState
	case "rollback":
		return primitive.RollbackMessageState
	}
	return primitive.UnknowState
}

func (d *decisions) CheckLocalTransaction(one *primitive.MessageExt) primitive.LocalTransactionState {
	d.asked.Store(string(one.Body), true)
	if string(one.Body) == "forgotten" {
		return primitive.RollbackMessageState
	}
	return primitive.CommitMessageState
}

// transacting commits, rolls back, and is asked what it has not said.
func transacting(to *section) {
	newTopic("go_transactions", 1)
	told, decided := &section{}, &decisions{}
	reader := pushed("transactions", "go_transactions", everything, saying(told))
	one, err := rocketmq.NewTransactionProducer(decided, producer.WithNsResolver(resolver()),
		producer.WithGroupName("p_transactions"), producer.WithInstanceName("p_transactions"))
	must(err)
	must(one.Start())
	for _, body := range []string{"commit", "rollback", "remembered", "forgotten"} {
		result, err := one.SendMessageInTransaction(background, primitive.NewMessage("go_transactions", []byte(body)))
		if err != nil {
			to.say("!! %v", err)
			continue
		}
		to.say("%s status %d state %d", body, result.Status, result.State)
	}
	told.wait(2)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if _, asked := decided.asked.Load("forgotten"); asked {
			to.say("asked")
			break
		}
	}
	must(one.Shutdown())
	must(reader.Shutdown())
	for _, line := range told.lines {
		to.lines = append(to.lines, line)
	}
}

// answering is a request with an answer.
func answering(to *section) {
	newTopic("go_asked", 1)
	replies := started("replies", producer.WithQueueSelector(producer.NewRoundRobinQueueSelector()))
	reader := pushed("asked", "go_asked", everything,
		func(_ context.Context, all ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			for _, one := range all {
				answer, err := consumer.CreateReplyMessage(one, nil)
				if err != nil {
					to.say("!! %v", err)
					continue
				}
				answer.Body = append([]byte("echo of "), one.Body...) // which the client forgets
				_, _ = replies.SendSync(background, answer)
			}
			return consumer.ConsumeSuccess, nil
		})
	one := started("asking", producer.WithQueueSelector(producer.NewRoundRobinQueueSelector()))
	for end := time.Now().Add(patience); time.Now().Before(end); { // until a heartbeat has named it to the broker
		answer, err := one.Request(background, 2*time.Second, primitive.NewMessage("go_asked", []byte("hello")))
		if err == nil {
			to.say("%s", answer.Body)
			break
		}
	}
	must(one.Shutdown())
	must(reader.Shutdown())
	must(replies.Shutdown())
}

// sharing has a second consumer of a group come, and the first one go.
func sharing(to *section) {
	newTopic("go_shared", 4)
	told := [2]*section{{}, {}}
	open := func(number int) rocketmq.PushConsumer {
		return pushed("shared", "go_shared", everything,
			func(_ context.Context, all ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
				for _, one := range all {
					told[number].say("%s", one.Body)
				}
				return consumer.ConsumeSuccess, nil
			}, consumer.WithInstance(fmt.Sprint("s", number)))
	}
	one := started("shared")
	round := func(name string) {
		for queue := 0; queue < 4; queue++ {
			_, err := one.SendSync(background, at("go_shared", queue, fmt.Sprint(name, queue)))
			must(err)
		}
	}
	first := open(0)
	round("alone ")
	told[0].wait(4)
	second := open(1)
	for end := time.Now().Add(patience); told[1].count() == 0 && time.Now().Before(end); {
		round("both ")
		time.Sleep(100 * time.Millisecond)
	}
	to.say("both read: %v", told[1].count() > 0)
	must(first.Shutdown())
	before := told[1].count()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		round("left ")
		seen := strings.Join(told[1].lines[before:], " ")
		if strings.Contains(seen, "left 0") && strings.Contains(seen, "left 1") &&
			strings.Contains(seen, "left 2") && strings.Contains(seen, "left 3") {
			to.say("the other one has all queues")
			break
		}
	}
	must(second.Shutdown())
	must(one.Shutdown())
}

// namespacing wraps all names.
func namespacing(to *section) {
	newTopic("space%go_spaced", 1)
	one := started("spaced", producer.WithNamespace("space"),
		producer.WithQueueSelector(producer.NewRoundRobinQueueSelector()))
	to.say("%s", sent(one.SendSync(background, primitive.NewMessage("go_spaced", []byte("m")))))
	reader := pushed("spaced", "go_spaced", everything, saying(to), consumer.WithNamespace("space"))
	to.wait(2)
	must(reader.Shutdown())
	must(one.Shutdown())
}

// tracing writes what was sent and consumed to the trace topic.
func tracing(to *section) {
	newTopic("go_traced", 1)
	trace := &primitive.TraceConfig{GroupName: "g_trace", Access: primitive.Local, NamesrvAddrs: []string{nameServer},
		Resolver: resolver()}
	one := started("traced", producer.WithTrace(trace))
	to.say("%s", sent(one.SendSync(background, at("go_traced", 0, "m").WithKeys([]string{"k"}))))
	traces := &section{}
	known("RMQ_SYS_TRACE_TOPIC", 1)
	reader := pushed("traces", "RMQ_SYS_TRACE_TOPIC", everything,
		func(_ context.Context, all ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			for _, one := range all {
				if strings.Contains(string(one.Body), "go_traced") {
					fields := strings.Split(string(one.Body), "\x01")
					traces.say("%s fields %d", fields[0], len(fields))
				}
			}
			return consumer.ConsumeSuccess, nil
		})
	traces.wait(1)
	must(reader.Shutdown())
	must(one.Shutdown())
	to.lines = append(to.lines, traces.lines...)
}

// administering makes, lists and deletes.
func administering(to *section) {
	one, err := admin.NewAdmin(admin.WithResolver(resolver()))
	must(err)
	newTopic("go_made", 3)
	queues, err := one.FetchPublishMessageQueues(background, "go_made")
	to.say("%d queues %v", len(queues), err)
	lists := func() bool {
		topics, err := one.FetchAllTopicList(background)
		must(err)
		for _, name := range topics.TopicList {
			if name == "go_made" {
				return true
			}
		}
		return false
	}
	to.say("listed: %v", lists())
	groups, err := one.GetAllSubscriptionGroup(background, broker, 10*time.Second)
	must(err)
	names := []string{}
	for name, about := range groups.SubscriptionGroupTable {
		if !strings.HasPrefix(name, "g_") && !strings.HasPrefix(name, "space%") {
			names = append(names, fmt.Sprintf("%s enabled=%v broadcast=%v retries=%d/%d", name, about.ConsumeEnable,
				about.ConsumeBroadcastEnable, about.RetryMaxTimes, about.RetryQueueNums))
		}
	}
	sort.Strings(names)
	to.lines = append(to.lines, names...)
	to.say("deleted: %v", one.DeleteTopic(background, admin.WithTopicDelete("go_made"),
		admin.WithBrokerAddrDelete(broker), admin.WithNameSrvAddr([]string{nameServer})))
	to.say("listed: %v", lists())
	must(one.Close())
}
