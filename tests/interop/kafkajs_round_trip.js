// kafkajs does all that it can without transactions: node kafkajs_round_trip.js BOOTSTRAP TOPIC
// Prints one JSON object that says what came out.
const { Kafka, CompressionTypes, logLevel } = require("kafkajs");

async function produce(kafka, topic) {
  const rounds = [[{}, CompressionTypes.None], [{ idempotent: true }, CompressionTypes.GZIP]];
  for (const [options, compression] of rounds) {
    const producer = kafka.producer(options);
    await producer.connect();
    const messages = [...Array(10).keys()].map((number) => ({
      key: number % 3 === 0 ? null : `k${number}`,
      value: number === 7 ? null : `v${number}`,
      partition: number % 2,
      headers: { n: `${number}`, twice: ["a", "b"] },
    }));
    await producer.send({ topic, messages, compression, acks: -1 });
    await producer.disconnect();
  }
}

async function consume(kafka, topic, count) {
  const consumer = kafka.consumer({ groupId: `${topic}-group`, maxWaitTimeInMs: 100 });
  const found = [];
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await new Promise((resolve) =>
    consumer.run({
      eachMessage: async ({ partition, message }) => {
        const { offset, key, value, headers } = message;
        const text = (data) => (data === null ? null : data.toString());
        const twice = headers.twice.map(text);
        found.push([partition, Number(offset), text(key), text(value), text(headers.n), twice]);
        if (found.length === count) resolve();
      },
    }),
  );
  await consumer.disconnect();
  return found.sort((one, other) => one[0] - other[0] || one[1] - other[1]);
}

async function main([bootstrap, topic]) {
  const kafka = new Kafka({ brokers: [bootstrap], clientId: "kafkajs", logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  const created = await admin.createTopics({ topics: [{ topic, numPartitions: 2 }], waitForLeaders: true });
  await produce(kafka, topic);
  const records = await consume(kafka, topic, 20);
  const offsets = await admin.fetchTopicOffsets(topic);
  const groups = await admin.describeGroups([`${topic}-group`]);
  const committed = await admin.fetchOffsets({ groupId: `${topic}-group`, topics: [topic] });
  const cluster = await admin.describeCluster();
  await admin.deleteTopics({ topics: [topic] });
  await admin.disconnect();
  const number = (one) => [one.partition, Number(one.offset)];
  console.log(
    JSON.stringify({
      created,
      records,
      ends: offsets.map(number).sort(),
      committed: committed[0].partitions.map(number).sort(),
      state: groups.groups[0].state,
      brokers: cluster.brokers.length,
    }),
  );
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
