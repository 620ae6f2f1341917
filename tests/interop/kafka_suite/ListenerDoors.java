package logstore;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.kafka.common.network.ListenerName;

/**
 * The listeners of a broker that takes its clients for those after whom the listeners are called.
 *
 * Kafka's tests have a class for that (`principal.builder.class`), which no other broker can run.
 */
public final class ListenerDoors implements AutoCloseable {
    private static final String CLIENT = "CLIENT";
    private static final String BROKER = "BROKER";
    private static final String LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required";

    private final Map<String, Integer> ports = Map.of(CLIENT, freePort(), BROKER, freePort());
    private final Map<String, NamedDoor> doors = new HashMap<>();

    private ListenerDoors() {
        ports.forEach((name, port) -> doors.put(name, new NamedDoor(name.toLowerCase(Locale.ROOT), port)));
    }

    /** Those of a test that has its principals made from the names of these two listeners. */
    public static Optional<ListenerDoors> wantedBy(Map<String, String> settings) {
        boolean isWanted = settings.getOrDefault("principal.builder.class", "").contains("AuthorizerIntegrationTest");
        return isWanted ? Optional.of(new ListenerDoors()) : Optional.empty();
    }

    /** A port that nobody listened at a moment ago. */
    public static int freePort() {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** What the broker is told. */
    public Map<String, String> settings() {
        Map<String, String> found = new HashMap<>(Map.of(
            "listeners", listed("127.0.0.1", ports::get),
            "advertised.listeners", listed("localhost", name -> doors.get(name).port()),
            "listener.security.protocol.map", CLIENT + ":SASL_PLAINTEXT," + BROKER + ":SASL_PLAINTEXT",
            "sasl.enabled.mechanisms", "PLAIN"
        ));
        for (String name : doors.keySet()) {
            String user = name.toLowerCase(Locale.ROOT);
            String key = "listener.name." + user + ".plain.sasl.jaas.config";
            found.put(key, LOGIN + " user_" + user + "=\"" + user + "\";");
        }
        return found;
    }

    private String listed(String host, Function<String, Integer> port) {
        return ports.keySet().stream().map(name -> name + "://" + host + ":" + port.apply(name))
            .collect(Collectors.joining(","));
    }

    public int port(ListenerName listener) {
        return doors.get(listener.value()).port();
    }

    /** Where one is the broker, who may do everything. */
    public String bootstrap() {
        return "localhost:" + doors.get(BROKER).port();
    }

    @Override
    public void close() {
        doors.values().forEach(NamedDoor::close);
    }
}
