// npm ali-ons sends and consumes: node ali_ons_round_trip.js NAME_SERVER TOPIC
// Prints sections as the Java programs do. The topic is made beforehand.
const { Producer, Consumer, Message } = require("ali-ons");
const httpclient = require("urllib");
const [nameSrv, topic] = process.argv.slice(2);
const logger = { info() {}, warn() {}, error() {}, debug() {} };
const common = { nameSrv, httpclient, logger, accessKeyId: "", accessKeySecret: "", namespace: "" };
const PATIENCE_MS = 40000;

async function until(what, question) {
  const end = Date.now() + PATIENCE_MS;
  while (!question()) {
    if (Date.now() > end) throw new Error(`${what}: not in time`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function produce() {
  console.log("== produce");
  const producer = new Producer({ ...common, producerGroup: "ali_producers" });
  producer.on("error", () => {}); // every missing route is one, and is looked for again
  await producer.ready();
  for (let number = 0; number < 6; number++) {
    const message = new Message(topic, number % 2 ? "odd" : "even", `from JavaScript ${number}`);
    message.keys = [`key${number}`, "all"];
    const sent = await producer.send(message);
    console.log(`sent: ${sent.sendStatus} ${sent.msgId.length > 0}`);
  }
  await producer.send(new Message(topic, "even", "x".repeat(20000)));
  return producer;
}

// A member of a group reads what comes after it is there: this client starts at the end.
async function consume(producer, tags, count, isBroadcast) {
  console.log(`== consume ${tags}${isBroadcast ? " everywhere" : ""}`);
  const found = [];
  const consumerGroup = `ali_readers_${tags.replace(/\W/g, "_")}${isBroadcast}`;
  const consumer = new Consumer({ ...common, consumerGroup, isBroadcast });
  consumer.on("error", () => {}); // it takes "no offset yet" for an error, and goes on
  consumer.subscribe(topic, tags, async (message) => {
    found.push(`${message.tags} ${message.keys} ${message.body.length < 80 ? message.body : message.body.length}`);
  });
  await consumer.ready();
  const probing = setInterval(() => producer.send(new Message(topic, "odd", "probe")).catch(() => {}), 500);
  await until("a probe", () => found.length > 0);
  clearInterval(probing);
  for (let number = 0; number < count; number++) {
    await producer.send(new Message(topic, number % 3 ? "odd" : "even", `to ${consumerGroup} ${number}`));
  }
  const wanted = tags === "*" ? count : Math.floor((count * 2) / 3);
  const ours = () => found.filter((line) => line.includes(`to ${consumerGroup} `));
  await until(`${wanted} messages`, () => ours().length >= wanted);
  for (const line of ours().sort()) console.log(line);
  await consumer.close();
}

async function main() {
  const producer = await produce();
  await consume(producer, "*", 9, false);
  await consume(producer, "odd", 9, false);
  await consume(producer, "*", 9, true);
  await producer.close();
  process.exit(0);
}

main().catch((error) => {
  console.log(`!! ${error.message}`);
  process.exit(1);
});
