package logstore;

import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.stream.Collectors;
import kafka.integration.KafkaServerTestHarness;
import kafka.security.JaasTestUtils;
import org.apache.kafka.common.network.ConnectionMode;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import scala.jdk.javaapi.OptionConverters;

/** The only listener of a broker whose clients speak TLS to it: what the broker is told of it, and what a client is. */
public final class TlsListener {
    private TlsListener() {
    }

    /** Whether a test wants that. */
    public static boolean isWantedBy(Object test) {
        return test instanceof KafkaServerTestHarness harness && harness.securityProtocol() == SecurityProtocol.SSL;
    }

    /** The rest, certificates and whom to trust, is what the test says. */
    public static Map<String, String> settings() {
        return Map.of("listener.security.protocol.map", "PLAINTEXT:SSL");
    }

    /** What somebody needs who asks the broker on behalf of the test. */
    public static Map<String, Object> client(KafkaServerTestHarness test) {
        try {
            Properties found = JaasTestUtils.securityConfigs(
                ConnectionMode.CLIENT, SecurityProtocol.SSL, OptionConverters.toJava(test.trustStoreFile()),
                "harness", JaasTestUtils.SSL_CERTIFICATE_CN, Optional.empty()
            );
            return found.entrySet().stream()
                .collect(Collectors.toMap(one -> (String) one.getKey(), Map.Entry::getValue));
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }
}
