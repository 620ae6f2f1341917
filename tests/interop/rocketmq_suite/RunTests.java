package logstore;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.internal.TextListener;
import org.junit.internal.RealSystem;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.Request;
import org.junit.runner.Result;
import org.junit.runner.Runner;
import org.junit.runner.manipulation.Filter;
import org.junit.runners.BlockJUnit4ClassRunner;
import org.junit.runners.Suite;
import org.junit.runners.model.FrameworkMethod;
import org.junit.runners.model.InitializationError;

/**
 * Runs classes of tests, but for the methods whose names stand behind a minus.
 *
 * Those that RocketMQ ignores because they fail now and then where it runs them are run, too.
 */
public final class RunTests {
    private RunTests() {
    }

    public static void main(String[] names) throws ClassNotFoundException, InitializationError {
        Set<String> passedOver = Arrays.stream(names).filter(name -> name.startsWith("-"))
            .map(name -> name.substring(1)).collect(Collectors.toSet());
        List<Runner> classes = new ArrayList<>();
        for (String name : names) {
            if (!name.startsWith("-")) {
                classes.add(ignoringNothing(Class.forName(name)));
            }
        }
        JUnitCore core = new JUnitCore();
        core.addListener(new TextListener(new RealSystem()));
        Runner all = new Suite((Class<?>) null, classes) { };
        Request request = Request.runner(all).filterWith(without(passedOver));
        Result result = core.run(request);
        System.out.println("passed " + (result.getRunCount() - result.getFailureCount()));
        System.exit(result.wasSuccessful() && result.getRunCount() > 0 ? 0 : 1);
    }

    private static Runner ignoringNothing(Class<?> tests) throws InitializationError {
        return new BlockJUnit4ClassRunner(tests) {
            @Override
            protected boolean isIgnored(FrameworkMethod test) {
                return false;
            }
        };
    }

    private static Filter without(Set<String> passedOver) {
        return new Filter() {
            @Override
            public boolean shouldRun(Description test) {
                return !passedOver.contains(test.getMethodName());
            }

            @Override
            public String describe() {
                return "without " + passedOver;
            }
        };
    }
}
