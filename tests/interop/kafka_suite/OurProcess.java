package logstore;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * One `logstore serve`, stopped and started on the same port and directory.
 *
 * The system properties logstore.python and logstore.directory say with which interpreter, and where.
 */
public final class OurProcess {
    private static final Pattern BOOTSTRAP = Pattern.compile("\"bootstrap\": *\"([^\"]*:(\\d+))\"");
    private static final int STOP_SECONDS_MAX = 60;

    private final Path directory;
    private final Map<String, String> settings;
    private final MetadataVersion version;
    private Process process;
    private String port = "0";
    private String bootstrap = "";

    /** `version` is that of the metadata that a new directory gets, at most the newest one of a release. */
    public OurProcess(Map<String, String> settings, MetadataVersion version) {
        this.settings = settings;
        this.version = version.isProduction() ? version : MetadataVersion.latestProduction();
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
        command.addAll(List.of("--port", port, "--data", directory.resolve("data").toString()));
        command.addAll(List.of("--release-version", version.version()));
        settings.forEach((key, value) -> command.addAll(List.of("--set", key + "=" + value)));
        File log = directory.resolve("log").toFile();
        try {
            process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.appendTo(log)).start();
            String line = new BufferedReader(new InputStreamReader(process.getInputStream())).readLine();
            Matcher found = BOOTSTRAP.matcher(line == null ? "" : line);
            if (!found.find()) {
                throw new IllegalStateException("it did not start: " + Files.readString(log.toPath()));
            }
            bootstrap = found.group(1);
            port = found.group(2);
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
        return bootstrap;
    }

    public synchronized boolean isRunning() {
        return process != null;
    }

    public int port() {
        return Integer.parseInt(port);
    }
}
