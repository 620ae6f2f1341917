package logstore;

import kafka.api.SaslSslAdminIntegrationTest;
import org.apache.kafka.common.security.auth.SecurityProtocol;

/** The tests of rules and of who may do what, which Kafka runs with Kerberos, with everybody nameless and trusted. */
public class NamelessAdminTest extends SaslSslAdminIntegrationTest {
    @Override
    public SecurityProtocol securityProtocol() {
        return SecurityProtocol.PLAINTEXT;
    }

    @Override
    public void setUpSasl() {
    }

    @Override
    public void closeSasl() {
    }
}
