package dev.streamjoin;

import java.io.File;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;
import org.apache.spark.api.python.PythonWorker;
import scala.Tuple2;

/**
 * Keeps tasks away from an executor until it is warm: Spark starts plugins before the executor reports to the
 * driver that it takes tasks. By then everything exists that the first task would wait for: the Python daemon
 * with its imports, and a worker for each core.
 */
public class WarmExecutor implements SparkPlugin {
    private static final String ENVIRONMENT = "spark.executorEnv.";
    private static final Set WARM = ConcurrentHashMap.newKeySet();

    /** Returns whether the executor takes tasks. Called by the driver. */
    public static boolean has(String executor) {
        return WARM.contains(executor);
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
            WARM.clear(); // executor ids restart at 1 in every session
            NotReadyYet.ignore();
            return new HashMap();
        }

        @Override
        public Object receive(Object executor) {
            WARM.add(executor);
            return null;
        }
    }

    public static class Executor implements ExecutorPlugin {
        @Override
        public void init(PluginContext context, Map extra) {
            try {
                warm(SparkEnv.get());
            } catch (Throwable error) { // warming only saves time: the first task reports the error
                System.err.println("not warm: " + error);
            }
            try {
                context.send(context.executorID());
            } catch (Exception error) {
                throw new IllegalStateException("the driver is gone", error);
            }
        }

        private static void warm(SparkEnv env) {
            SparkConf conf = env.conf();
            String python = conf.get("spark.streamjoin.python");
            String daemon = conf.get("spark.python.daemon.module");
            scala.collection.immutable.Map variables = variables(env, conf);
            PythonWorker[] workers = new PythonWorker[conf.getInt("spark.executor.cores", 1)];
            for (int i = 0; i < workers.length; i++) {
                Tuple2 made = env.createPythonWorker(python, "pyspark.worker", daemon, variables, true);
                workers[i] = (PythonWorker) made._1();
            }
            for (int i = 0; i < workers.length; i++) {
                env.releasePythonWorker(python, "pyspark.worker", daemon, variables, workers[i]);
            }
        }

        /**
         * Returns the environment of a task's worker (`BasePythonRunner.compute`). With any other one, Spark
         * would start another daemon for the tasks.
         */
        private static scala.collection.immutable.Map variables(SparkEnv env, SparkConf conf) {
            Map found = new HashMap();
            Tuple2[] all = conf.getAll();
            for (int i = 0; i < all.length; i++) {
                String name = (String) all[i]._1();
                if (name.startsWith(ENVIRONMENT)) {
                    found.put(name.substring(ENVIRONMENT.length()), all[i]._2());
                }
            }
            found.putIfAbsent("OMP_NUM_THREADS", conf.get("spark.task.cpus", "1"));
            found.put("PYTHONHASHSEED", conf.get("spark.streamjoin.hashSeed"));
            found.put("SPARK_LOCAL_DIRS", folders(env.blockManager().diskBlockManager().localDirs()));
            found.put("SPARK_REUSE_WORKER", "1");
            found.put("SPARK_AUTH_SOCKET_TIMEOUT", "15");
            found.put("SPARK_BUFFER_SIZE", conf.get("spark.buffer.size", "65536"));
            found.put("PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE", "1");
            found.put("PYTHON_UDF_BATCH_SIZE", "100");
            found.put("SPARK_JOB_ARTIFACT_UUID", "default");
            found.put("SPARK_PYTHON_RUNTIME", "PYTHON_WORKER");
            return scala.collection.immutable.Map$.MODULE$.from(
                scala.jdk.javaapi.CollectionConverters.asScala(found));
        }

        private static String folders(File[] folders) {
            String[] names = new String[folders.length];
            for (int i = 0; i < names.length; i++) {
                names[i] = folders[i].toString();
            }
            return String.join(",", Arrays.asList(names));
        }
    }
}
