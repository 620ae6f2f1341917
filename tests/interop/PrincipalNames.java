import java.io.FileInputStream;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/**
 * Prints who a certificate is of, for tests/interop/test_principal_names.py.
 *
 * <pre>RULES FILE...   a line for each file: the name of its certificate, and what the rules make of it</pre>
 */
public final class PrincipalNames {
    public static void main(String[] args) throws Exception {
        SslPrincipalMapper mapper = SslPrincipalMapper.fromRules(args[0]);
        CertificateFactory factory = CertificateFactory.getInstance("X.509");
        for (int i = 1; i < args.length; i++) {
            try (FileInputStream file = new FileInputStream(args[i])) {
                X509Certificate found = (X509Certificate) factory.generateCertificate(file);
                String name = found.getSubjectX500Principal().getName();
                String user;
                try {
                    user = mapper.getName(name);
                } catch (Exception e) {
                    user = "!" + e.getClass().getSimpleName();
                }
                System.out.println(name + "\t" + user);
            }
        }
    }
}
