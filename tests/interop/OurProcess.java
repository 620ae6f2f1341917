package logstore;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * One `logstore serve`, stopped and started on the same port and directory.
 *
 * The system properties logstore.python and logstore.directory say with which interpreter, and where.
 */
public final class OurProcess {
    private static final int STOP_SECONDS_MAX = 60;
    private static final String HOST = "localhost"; // so real brokers of Kafka's tests are called

    private final Path directory;
    private final String portOption;
    private final String listener;
    private final List<String> arguments;
    private final Map<String, String> settings;
    private final Set<Integer> nodesDown = ConcurrentHashMap.newKeySet();
    private Process process;
    private String port = "0";
    private String answer = "";

    /** A broker for Kafka's clients, whose new directory has the metadata version of that release. */
    public OurProcess(Map<String, String> settings, String release) {
        this("--port", "bootstrap", List.of("--release-version", release, "--host", HOST), settings);
    }

    /**
     * A broker of these arguments; the address that it names `listener` keeps its port, which
     * `portOption` is for. The data is below the directory where they do not say where it is.
     */
    public OurProcess(String portOption, String listener, List<String> arguments, Map<String, String> settings) {
        this.portOption = portOption;
        this.listener = listener;
        this.arguments = arguments;
        this.settings = settings;
        try {
            directory = Files.createTempDirectory(Path.of(System.getProperty("logstore.directory")), "b");
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    public synchronized void start() {
        if (process != null) {
            return;
        }
        String python = System.getProperty("logstore.python");
        List<String> command = new ArrayList<>(List.of(python, "-m", "logstore.tools.cli", "serve", "--json"));
        boolean hasPorts = settings.containsKey("listeners");
        if (!hasPorts) {
            command.addAll(List.of(portOption, port));
        }
        if (!arguments.contains("--data")) {
            command.addAll(List.of("--data", data().toString()));
        }
        command.addAll(arguments);
        settings.forEach((key, value) -> command.addAll(List.of("--set", key + "=" + value)));
        File log = directory.resolve("log").toFile();
        try {
            process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.appendTo(log)).start();
            Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly)); // if no test stops it
            String line = new BufferedReader(new InputStreamReader(process.getInputStream())).readLine();
            if (line == null) {
                throw new IllegalStateException("it did not start: " + Files.readString(log.toPath()));
            }
            answer = line;
            port = hasPorts ? port : address(listener).replaceFirst(".*:", "");
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    public synchronized void stop() {
        if (process == null) {
            return;
        }
        process.destroy();
        try {
            boolean isOver = process.waitFor(STOP_SECONDS_MAX, TimeUnit.SECONDS);
            process.destroyForcibly();
            if (!isOver || process.exitValue() != 0) {
                throw new IllegalStateException("it did not stop cleanly; see " + directory);
            }
        } catch (InterruptedException error) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        } finally {
            process = null;
        }
    }

    public String bootstrap() {
        return address("bootstrap");
    }

    /** A cluster of so many nodes, which go and come by its control port. */
    public static OurProcess cluster(Map<String, String> settings, String release, int nodeCount) {
        return new OurProcess("--control-port", "control", List.of(
            "--release-version", release, "--host", HOST, "--nodes", String.valueOf(nodeCount), "--port", "0"
        ), settings);
    }

    public void stopNode(int id) {
        control("/nodes/" + id + "/stop");
        nodesDown.add(id);
    }

    public void startNode(int id) {
        control("/nodes/" + id + "/start");
        nodesDown.remove(id);
    }

    public int nodePort(int id) {
        return Integer.parseInt(address(String.valueOf(id)).replaceFirst(".*:", ""));
    }

    /** Asks something of its control port, by POST. */
    private void control(String path) {
        URI asked = URI.create(address("control") + path);
        // Java's clients of HTTP leave threads, which Kafka's tests take for their own
        try (Socket socket = new Socket(asked.getHost(), asked.getPort())) {
            String head = "POST " + path + " HTTP/1.1\r\nHost: " + asked.getAuthority() + "\r\n";
            String whole = head + "Content-Length: 0\r\nConnection: close\r\n\r\n";
            socket.getOutputStream().write(whole.getBytes(StandardCharsets.US_ASCII));
            String told = new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            if (!told.matches("(?s)HTTP/1\\.[01] 200 .*")) {
                throw new IllegalStateException(path + ": " + told);
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** One of the addresses that it said when it was ready. */
    public String address(String name) {
        Matcher found = Pattern.compile("\"" + name + "\": *\"([^\"]*:\\d+)\"").matcher(answer);
        if (!found.find()) {
            throw new IllegalStateException("no " + name + " in " + answer);
        }
        return found.group(1);
    }

    /** Where its logs are, if its arguments say nothing else. */
    public Path data() {
        return directory.resolve("data");
    }

    public synchronized boolean isRunning() {
        return process != null;
    }

    /** Whether a node of a cluster is up. */
    public boolean isRunning(int id) {
        return isRunning() && !nodesDown.contains(id);
    }

    public int port() {
        return Integer.parseInt(port);
    }
}
