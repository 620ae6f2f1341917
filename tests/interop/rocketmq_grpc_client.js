// The official client of RocketMQ 5 for Node, npm's rocketmq-client-nodejs, which speaks gRPC.
//
// To be run as `node rocketmq_grpc_client.js ENDPOINTS`; prints sections as the Java programs do.
// Topics and groups are those of rocketmq_grpc_client.py.

const { ConsumeResult, Producer, PushConsumer, SimpleConsumer } =
  require('rocketmq-client-nodejs');

const COMMIT = 1; // of TransactionResolution, which it does not export
const PATIENCE_MS = 60_000;
const endpoints = process.argv[2];
const logger = { info() {}, warn() {}, error() {}, debug() {}, close() {} };
const shared = { endpoints, namespace: '', requestTimeout: 30_000, logger };

const made = (topic, body, about = {}) => ({
  topic, body: Buffer.from(body), keys: [`key-${body}`], tag: 't',
  properties: new Map([['color', 'blue']]), ...about,
});

const shown = one =>
  `${one.topic} ${one.body} ${one.tag} [${[...one.keys].sort()}] color=${one.properties.get('color')} ` +
  `group=${one.messageGroup} attempt=${one.deliveryAttempt}`;

// So many messages as they come; each is ended by `end` at once, by acknowledgement if not told.
async function received(consumer, count, end = one => consumer.ack(one)) {
  const found = [];
  for (const until = Date.now() + PATIENCE_MS; found.length < count && Date.now() < until;) {
    for (const one of await consumer.receive(16, 15_000)) {
      await end(one);
      found.push(shown(one));
    }
  }
  return found;
}

// A consumer of a group that is new: it has seen what was there before.
async function consumerOf(topic, consumerGroup, filter = '*') {
  const consumer = new SimpleConsumer(
    { ...shared, consumerGroup, subscriptions: new Map([[topic, filter]]), awaitDuration: 5000 });
  await consumer.startup();
  for (const one of await consumer.receive(32, 15_000)) await consumer.ack(one);
  return consumer;
}

// A push consumer that keeps what comes, and fails once at some bodies.
async function pushed(topic, consumerGroup, failing, filter = '*') {
  const seen = [];
  const messageListener = {
    async consume(one) {
      const fails = failing.delete(one.body.toString());
      seen.push(`${shown(one)}${fails ? ' failed' : ''}`);
      return fails ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
    },
  };
  const consumer = new PushConsumer(
    { ...shared, consumerGroup, subscriptions: new Map([[topic, filter]]), messageListener });
  await consumer.startup();
  const wait = async count => {
    for (const end = Date.now() + PATIENCE_MS; seen.length < count && Date.now() < end;) {
      await new Promise(resolve => setTimeout(resolve, 20));
    }
    return seen; // it takes long to shut down, and ends with the process
  };
  return wait;
}

async function sendAndReceive(producer) {
  const say = ['== received'];
  const consumer = await consumerOf('normal', 'js_readers');
  for (const body of ['a', 'b']) say.push(`${(await producer.send(made('normal', body))).messageId.length} letters`);
  const found = await received(consumer, 2, one =>
    one.body.toString() === 'a' ? consumer.ack(one) : consumer.changeInvisibleDuration(one, 10_000));
  say.push(...found.sort(), ...await received(consumer, 1));
  await consumer.shutdown();
  return say;
}

async function push(producer) {
  await (await consumerOf('normal', 'js_pushed')).shutdown();
  const wait = await pushed('normal', 'js_pushed', new Set(['bad']), 'wanted');
  for (const [body, tag] of [['good', 'wanted'], ['other', 'unwanted'], ['bad', 'wanted']]) {
    await producer.send(made('normal', body, { tag }));
  }
  return ['== pushed', ...(await wait(3)).sort()];
}

async function inOrder(producer) {
  await (await consumerOf('fifo', 'in_order')).shutdown();
  const wait = await pushed('fifo', 'in_order', new Set(['2']));
  for (const number of [0, 1, 2, 3]) await producer.send(made('fifo', `${number}`, { messageGroup: 'g' }));
  return ['== in order', ...await wait(4)];
}

async function later(producer) {
  const say = ['== later'];
  const consumer = await consumerOf('delay', 'js_later');
  const due = Date.now() + 4000;
  await producer.send(made('delay', 'due', { deliveryTimestamp: new Date(due) }));
  const { recallHandle } = await producer.send(made('delay', 'recalled', { deliveryTimestamp: new Date(due) }));
  const recalled = await producer.recallMessage('delay', recallHandle);
  say.push(`recalled: ${recalled.messageId.length > 0}`);
  say.push(...await received(consumer, 1), `in time: ${Date.now() >= Math.floor(due / 1000) * 1000}`);
  await consumer.shutdown();
  return say;
}

async function transactions() {
  const say = ['== transactions'];
  const checker = { async check() { return COMMIT; } };
  const producer = new Producer({ ...shared, topic: 'transaction', checker });
  await producer.startup();
  const consumer = await consumerOf('transaction', 'js_transactions');
  for (const [body, end] of [['committed', 'commit'], ['rolled back', 'rollback'], ['forgotten', null]]) {
    const transaction = producer.beginTransaction();
    await producer.send(made('transaction', body), transaction);
    if (end) await transaction[end]();
  }
  say.push(...(await received(consumer, 2)).sort());
  await consumer.shutdown();
  await producer.shutdown();
  return say;
}

async function refused(producer) {
  const say = ['== refused'];
  for (const [topic, about] of [['nobody_made_it', {}], ['fifo', {}], ['delay', {}]]) {
    try {
      await producer.send(made(topic, 'x', about));
      say.push(`${topic} sent`);
    } catch (error) {
      say.push(`${topic} ${error.name} ${error.code ?? ''}`);
    }
  }
  return say;
}

async function main() {
  const producer = new Producer({ ...shared, maxAttempts: 1 });
  await producer.startup();
  const scenarios = [sendAndReceive, inOrder, later, transactions, refused];
  const sections = await Promise.all(scenarios.map(one => one(producer)));
  sections.push(await push(producer)); // its topic is that of the first
  await producer.shutdown();
  for (const lines of sections) console.log(lines.join('\n'));
}

main().then(() => process.exit(0), error => { console.error(error); process.exit(1); });
