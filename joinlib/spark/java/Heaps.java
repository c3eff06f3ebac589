package dev.streamjoin;

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/**
 * The heaps of the driver and of its executors, which tell theirs. Spark's heartbeats carry that of an executor only
 * while a stage runs, and batches are over before the next one.
 */
public class Heaps implements SparkPlugin {
    private static final long EVERY_MS = 10000;
    private static final Map TOLD = new ConcurrentHashMap();

    /** Returns the bytes in use, garbage included, the most that they may be, and the milliseconds of all collections. */
    public static String own() {
        long spent = 0;
        Iterator collectors = ManagementFactory.getGarbageCollectorMXBeans().iterator();
        while (collectors.hasNext()) {
            spent += Math.max(0, ((GarbageCollectorMXBean) collectors.next()).getCollectionTime());
        }
        Runtime runtime = Runtime.getRuntime();
        return (runtime.totalMemory() - runtime.freeMemory()) + " " + runtime.maxMemory() + " " + spent;
    }

    /** Returns a line for each executor: its id, and what `own` said there last. Called by the driver. */
    public static String told() {
        return String.join("\n", TOLD.values());
    }

    @Override
    public DriverPlugin driverPlugin() {
        return new Driver();
    }

    @Override
    public ExecutorPlugin executorPlugin() {
        return new Executor();
    }

    public static class Driver implements DriverPlugin {
        @Override
        public Map init(SparkContext context, PluginContext plugin) {
            TOLD.clear(); // executor ids restart at 1 in every session
            return new HashMap();
        }

        @Override
        public Object receive(Object line) {
            String said = (String) line;
            TOLD.put(said.substring(0, said.indexOf(' ')), said);
            return null;
        }
    }

    public static class Executor implements ExecutorPlugin {
        private final Timer timer = new Timer("streamjoin-heap", true);

        @Override
        public void init(PluginContext context, Map extra) {
            timer.schedule(new Telling(context), 0, EVERY_MS);
        }

        @Override
        public void shutdown() {
            timer.cancel();
        }
    }

    public static class Telling extends TimerTask {
        private final PluginContext context;

        Telling(PluginContext context) {
            this.context = context;
        }

        @Override
        public void run() {
            try {
                context.send(context.executorID() + " " + own());
            } catch (Exception error) { // the driver is gone, and this executor ends soon
                cancel();
            }
        }
    }
}
