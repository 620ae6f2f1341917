import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;

/** What loads have in common: a line of standard input is one measurement, and has one line for an answer. */
final class LoadLines {
    /** Takes one measurement, by the words of its line; returns JSON. */
    interface Measure {
        String of(String[] words) throws Exception;
    }

    /** Answer every line until there are no more. */
    static void answer(Measure measure) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            String answer;
            try {
                answer = measure.of(line.split(" "));
            } catch (Throwable error) {
                answer = "{\"error\": \"" + error.toString().replaceAll("[^ -~]|[\"\\\\]", " ") + "\"}";
            }
            System.out.println(answer);
            System.out.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    /** Return so high a rank of sorted nanoseconds, in microseconds. */
    static double rank(long[] sorted, double share) {
        return sorted[Math.max((int) Math.ceil(share * sorted.length), 1) - 1] / 1e3;
    }
}
