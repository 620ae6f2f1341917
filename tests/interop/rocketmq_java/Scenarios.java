import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Runs scenarios of the official Java client, some at a time, and prints what each of them saw:
 * java Scenarios NAME_SERVER BROKER PREFIX [NAME ...]
 *
 * Each begins with a line "== NAME". What is printed holds no ids, times or addresses, so that two
 * brokers that do the same are told the same of. An exception is a line that begins with "!!".
 */
public class Scenarios {
    interface Scenario {
        void run(Lab lab) throws Exception;
    }

    static final int THREADS = 6;
    static final Map<String, Scenario> ALL = new LinkedHashMap<>();

    static {
        // Those that wait for the clock come first: the others run meanwhile.
        ALL.put("retry", Retries::retry);
        ALL.put("transactions", Transactions::transactions);
        ALL.put("delay", Retries::delay);
        ALL.put("rebalance", Pushing::rebalance);
        ALL.put("orderly", Pushing::orderly);
        ALL.put("push", Pushing::push);
        ALL.put("tags", Pushing::tags);
        ALL.put("sql", Pushing::sql);
        ALL.put("broadcast", Pushing::broadcast);
        ALL.put("produce", Producing::produce);
        ALL.put("batch", Producing::batch);
        ALL.put("refused", Producing::refused);
        ALL.put("pull", Pulling::pull);
        ALL.put("lite", Pulling::lite);
        ALL.put("waiting", Pulling::waiting);
        ALL.put("times", Pulling::times);
        ALL.put("query", Pulling::query);
        ALL.put("topics", Administration::topics);
        ALL.put("groups", Administration::groups);
        ALL.put("connections", Administration::connections);
        ALL.put("reset", Administration::reset);
        ALL.put("config", Administration::config);
    }

    public static void main(String[] args) throws Exception {
        List<String> wanted = List.of(args).subList(3, args.length);
        ExecutorService pool = Executors.newFixedThreadPool(THREADS);
        Map<Lab, Future<?>> running = new LinkedHashMap<>();
        for (Map.Entry<String, Scenario> one : ALL.entrySet()) {
            if (!wanted.isEmpty() && !wanted.contains(one.getKey())) continue;
            Lab lab = new Lab(args[0], args[1], args[2], one.getKey());
            running.put(lab, pool.submit(() -> run(one.getValue(), lab)));
        }
        for (Map.Entry<Lab, Future<?>> one : running.entrySet()) {
            one.getValue().get();
            System.out.println("== " + one.getKey().name);
            one.getKey().lines.forEach(System.out::println);
            System.out.flush();
        }
        Runtime.getRuntime().halt(0); // the clients' own threads would keep us for seconds
    }

    static void run(Scenario scenario, Lab lab) {
        long began = System.currentTimeMillis();
        try {
            scenario.run(lab);
        } catch (Throwable error) {
            lab.failed(error);
        }
        System.err.println(lab.name + " took " + (System.currentTimeMillis() - began) + " ms");
    }
}
