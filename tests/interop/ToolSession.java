import java.io.BufferedInputStream;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.kafka.common.utils.Exit;

/**
 * Kafka's tools, many runs in one JVM, each as if it had one of its own.
 *
 * <p>On standard input come the count of a run's words, its words (the main class first) and its
 * standard input; what goes out is its exit status, its standard output and its standard error.
 * Numbers have four bytes, and each text has its length in front.
 */
public final class ToolSession {
    private static final Printed OUT = new Printed();
    private static final Printed ERR = new Printed();
    private static final List<Runnable> HOOKS = new CopyOnWriteArrayList<>();
    private static volatile Integer status;

    /** What the run of the moment prints; nothing after it has called for its end. */
    private static final class Printed extends OutputStream {
        private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        private boolean isMuted;

        @Override
        public synchronized void write(int one) {
            if (!isMuted) {
                bytes.write(one);
            }
        }

        @Override
        public synchronized void write(byte[] some, int from, int length) {
            if (!isMuted) {
                bytes.write(some, from, length);
            }
        }

        synchronized void mute(boolean wanted) {
            isMuted = wanted;
        }

        synchronized byte[] taken() {
            byte[] all = bytes.toByteArray();
            bytes.reset();
            return all;
        }
    }

    /** Thrown where a JVM of the run's own would have ended. */
    private static final class Ended extends Error {
        private static final long serialVersionUID = 1;
    }

    public static void main(String[] args) throws Exception {
        DataInputStream asked =
                new DataInputStream(new BufferedInputStream(new FileInputStream(FileDescriptor.in)));
        DataOutputStream told = new DataOutputStream(new FileOutputStream(FileDescriptor.out));
        System.setOut(new PrintStream(OUT, true));
        System.setErr(new PrintStream(ERR, true));
        Exit.setExitProcedure((wanted, message) -> end(wanted));
        Exit.setHaltProcedure((wanted, message) -> end(wanted));
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        while (true) {
            String[] words;
            try {
                words = new String[asked.readInt()];
            } catch (EOFException nobodyAsks) {
                break;
            }
            for (int i = 0; i < words.length; i++) {
                words[i] = new String(text(asked), StandardCharsets.UTF_8);
            }
            System.setIn(new ByteArrayInputStream(text(asked)));
            run(words);
            told.writeInt(status);
            for (byte[] all : List.of(OUT.taken(), ERR.taken())) {
                told.writeInt(all.length);
                told.write(all);
            }
            told.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static byte[] text(DataInputStream asked) throws IOException {
        return asked.readNBytes(asked.readInt());
    }

    private static void end(int wanted) {
        if (status == null) {
            status = wanted;
            mute(true);
        }
        throw new Ended();
    }

    private static void mute(boolean wanted) {
        OUT.mute(wanted);
        ERR.mute(wanted);
    }

    private static void run(String[] words) {
        status = null;
        OUT.taken();
        ERR.taken();
        String[] rest = List.of(words).subList(1, words.length).toArray(new String[0]);
        try {
            Class.forName(words[0]).getMethod("main", String[].class).invoke(null, (Object) rest);
        } catch (InvocationTargetException thrown) {
            if (status == null) {
                System.err.print("Exception in thread \"main\" ");
                thrown.getCause().printStackTrace();
                status = 1;
            }
        } catch (ReflectiveOperationException noSuchTool) {
            noSuchTool.printStackTrace();
            status = 1;
        }
        mute(false);
        for (Runnable hook : HOOKS) {
            try {
                hook.run();
            } catch (Throwable thrown) {
                thrown.printStackTrace();
            }
        }
        HOOKS.clear();
        if (status == null) {
            status = 0;
        }
    }
}
