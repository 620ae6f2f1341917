package logstore;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * A port without passwords before a listener that wants one: whoever comes in is logged in as always the same user.
 *
 * Tests whose brokers tell principals by the listener have one for each: the broker itself goes by names and passwords.
 */
public final class NamedDoor implements AutoCloseable {
    private static final short SASL_HANDSHAKE = 17;
    private static final short SASL_AUTHENTICATE = 36;

    private final String user;
    private final int port;
    private final ServerSocket door;
    private final Set<Socket> open = ConcurrentHashMap.newKeySet();

    /** A door to that port, where the password of the user is its name. */
    public NamedDoor(String user, int port) {
        this.user = user;
        this.port = port;
        try {
            door = new ServerSocket(0, 0, InetAddress.getLoopbackAddress());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        started(this::takeIn);
    }

    public int port() {
        return door.getLocalPort();
    }

    @Override
    public void close() {
        quietly(door::close);
        open.forEach(one -> quietly(one::close));
    }

    private void takeIn() throws IOException {
        while (true) {
            Socket client = kept(door.accept());
            started(() -> lead(client));
        }
    }

    private void lead(Socket client) throws IOException {
        try (client; Socket broker = kept(new Socket(InetAddress.getLoopbackAddress(), port))) {
            byte[] mechanism = "PLAIN".getBytes(StandardCharsets.UTF_8);
            ask(broker, SASL_HANDSHAKE, ByteBuffer.allocate(7).putShort((short) 5).put(mechanism));
            byte[] token = ("\0" + user + "\0" + user).getBytes(StandardCharsets.UTF_8);
            ask(broker, SASL_AUTHENTICATE, ByteBuffer.allocate(4 + token.length).putInt(token.length).put(token));
            started(() -> {
                try (client; broker) {
                    broker.getInputStream().transferTo(client.getOutputStream());
                }
            });
            client.getInputStream().transferTo(broker.getOutputStream());
        }
    }

    private static void ask(Socket broker, short key, ByteBuffer body) throws IOException {
        DataOutputStream out = new DataOutputStream(broker.getOutputStream());
        ByteBuffer request = ByteBuffer.allocate(14 + body.capacity());
        short version = (short) (key == SASL_HANDSHAKE ? 1 : 0);
        request.putInt(10 + body.capacity()).putShort(key).putShort(version).putInt(0).putShort((short) -1);
        out.write(request.put(body.flip()).array());
        DataInputStream in = new DataInputStream(broker.getInputStream());
        in.readFully(new byte[in.readInt()]);
    }

    private Socket kept(Socket socket) throws IOException {
        socket.setTcpNoDelay(true);
        open.add(socket);
        return socket;
    }

    private interface Step {
        void run() throws IOException;
    }

    private static void started(Step step) {
        Thread thread = new Thread(() -> quietly(step));
        thread.setDaemon(true);
        thread.start();
    }

    /** Whoever is at the other end sees that a connection is over; there is nobody else to tell. */
    private static void quietly(Step step) {
        try {
            step.run();
        } catch (IOException error) {
            return;
        }
    }
}
