package logstore;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.authorizer.AclDeleteResult;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.authorizer.AuthorizerServerInfo;

/** The authorizer of a broker as Kafka's tests set its rules and read them, which asks the broker as a client does. */
final class RulesByAdmin implements Authorizer {
    private final Supplier<Admin> admin;

    RulesByAdmin(Supplier<Admin> admin) {
        this.admin = admin;
    }

    @Override
    public List<? extends CompletionStage<AclCreateResult>> createAcls(
        AuthorizableRequestContext context, List<AclBinding> bindings
    ) {
        var made = admin.get().createAcls(bindings).values();
        return bindings.stream().map(binding -> stage(made.get(binding), done -> AclCreateResult.SUCCESS)).toList();
    }

    @Override
    public List<? extends CompletionStage<AclDeleteResult>> deleteAcls(
        AuthorizableRequestContext context, List<AclBindingFilter> filters
    ) {
        var gone = admin.get().deleteAcls(filters).values();
        return filters.stream().map(filter -> stage(gone.get(filter), found -> new AclDeleteResult(
            found.values().stream().map(one -> new AclDeleteResult.AclBindingDeleteResult(one.binding())).toList()
        ))).toList();
    }

    private static <F, T> CompletionStage<T> stage(KafkaFuture<F> future, Function<F, T> result) {
        return future.toCompletionStage().thenApply(result);
    }

    @Override
    public Iterable<AclBinding> acls(AclBindingFilter filter) {
        try {
            return admin.get().describeAcls(filter).values().get();
        } catch (InterruptedException | ExecutionException error) {
            throw new ApiException(error);
        }
    }

    @Override
    public List<AuthorizationResult> authorize(AuthorizableRequestContext context, List<Action> actions) {
        throw new UnsupportedOperationException("only the broker itself authorizes");
    }

    @Override
    public Map<Endpoint, ? extends CompletionStage<Void>> start(AuthorizerServerInfo info) {
        return Map.of();
    }

    @Override
    public void configure(Map<String, ?> settings) {
    }

    @Override
    public void close() {
    }
}
