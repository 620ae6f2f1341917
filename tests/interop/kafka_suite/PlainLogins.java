package logstore;

import java.util.Map;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.JaasUtils;

/** What a broker is told whose only listener wants one of the two names and passwords that Kafka's tests have. */
public final class PlainLogins {
    private PlainLogins() {
    }

    /** The settings of a cluster that speaks so; nothing where it speaks without logins. */
    public static Map<String, String> settings(SecurityProtocol protocol) {
        if (protocol != SecurityProtocol.SASL_PLAINTEXT) {
            return Map.of();
        }
        return Map.of(
            "listener.security.protocol.map", "PLAINTEXT:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms", "PLAIN",
            "listener.name.plaintext.plain.sasl.jaas.config",
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
                + user(JaasUtils.KAFKA_PLAIN_ADMIN, JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD) + " "
                + user(JaasUtils.KAFKA_PLAIN_USER1, JaasUtils.KAFKA_PLAIN_USER1_PASSWORD) + ";",
            "authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users", "User:" + JaasUtils.KAFKA_PLAIN_ADMIN
        );
    }

    private static String user(String name, String password) {
        return "user_" + name + "=\"" + password + "\"";
    }
}
