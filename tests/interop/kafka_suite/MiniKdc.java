package kafka.security.minikdc;

import java.io.File;
import java.util.List;
import java.util.Properties;

/**
 * The server of Kerberos that some of Kafka's tests prepare, without any Kerberos.
 *
 * It stands before the class of that name in Kafka's jars, which wants a directory server on the class path.
 */
public final class MiniKdc {
    public MiniKdc(Properties settings, File directory) {
    }

    public static Properties createConfig() {
        return new Properties();
    }

    public void start() {
        throw new UnsupportedOperationException("there is no Kerberos");
    }

    public void stop() {
    }

    public void createPrincipal(File keytab, List<String> principals) {
        throw new UnsupportedOperationException("there is no Kerberos");
    }
}
