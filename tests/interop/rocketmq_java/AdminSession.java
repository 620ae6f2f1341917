import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * mqadmin, many commands in one JVM: a line of standard input is one command, its words separated
 * by tabs. Prints "== " and the command's name, and then what mqadmin printed.
 */
public class AdminSession {
    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            ByteArrayOutputStream said = new ByteArrayOutputStream();
            System.setOut(new PrintStream(said, true, "UTF-8"));
            String[] words = line.split("\t");
            try {
                MQAdminStartup.main0(words, null);
            } catch (Throwable error) {
                System.out.println("!! " + error);
            }
            out.println("== " + words[0]);
            out.println(said.toString("UTF-8"));
            out.flush();
        }
        Runtime.getRuntime().halt(0);
    }
}
