// kafkajs says who it is, with TLS: node kafkajs_login.js BOOTSTRAP CA_FILE MECHANISM:USER:PASSWORD...
// Prints one line a login: "in", or why not.
const fs = require("fs");
const { Kafka, logLevel } = require("kafkajs");

async function main([bootstrap, caFile, ...logins]) {
  const ssl = { ca: [fs.readFileSync(caFile)], servername: "localhost" };
  for (const login of logins) {
    const [mechanism, username, password] = login.split(":");
    const sasl = { mechanism, username, password };
    const retry = { retries: 0 };
    const kafka = new Kafka({ brokers: [bootstrap], ssl, sasl, retry, logLevel: logLevel.NOTHING });
    const admin = kafka.admin();
    try {
      await admin.connect();
      await admin.listTopics();
      console.log("in");
    } catch (error) {
      console.log(error.message);
    } finally {
      await admin.disconnect();
    }
  }
}

main(process.argv.slice(2));
