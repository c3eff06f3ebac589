package dev.streamjoin;

import java.lang.reflect.Field;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.python.PythonWorkerFactory;
import scala.Product;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.mutable.HashMap;
import scala.collection.mutable.Queue;

/**
 * The Python workers of this process that wait for a task.
 *
 * Spark takes the one that has waited longest. So tasks that come one at a time would go to all workers in turns, and
 * each would open what the others have open: indexes, connections, and producers, of which each fences the one before.
 */
public class Workers {
    private static final String ONCE = "pyspark.sql.worker.";

    private Workers() {}

    /** Lets the worker that has waited least take the next task. */
    public static void again() {
        SparkEnv env = SparkEnv.get();
        synchronized (env) { // as Spark does, to look for workers
            HashMap known = all(env);
            Iterator factories = known == null ? scala.collection.Iterator$.MODULE$.empty() : known.valuesIterator();
            while (factories.hasNext()) {
                PythonWorkerFactory factory = (PythonWorkerFactory) factories.next();
                synchronized (factory) {
                    Queue idle = factory.idleWorkers();
                    if (idle.size() > 1) {
                        idle.prepend(idle.removeLast(false));
                    }
                }
            }
        }
    }

    /**
     * Ends those that wait and did what is done once in a run, such as planning how a source is read: each holds as much
     * memory as one that joins. Should one be needed again, Spark starts it.
     */
    public static void once() {
        SparkEnv env = SparkEnv.get();
        synchronized (env) {
            HashMap known = all(env);
            Iterator entries = known == null ? scala.collection.Iterator$.MODULE$.empty() : known.iterator();
            while (entries.hasNext()) {
                Tuple2 entry = (Tuple2) entries.next();
                String module = (String) ((Product) entry._1()).productElement(1);
                PythonWorkerFactory factory = (PythonWorkerFactory) entry._2();
                synchronized (factory) {
                    if (module.startsWith(ONCE) && !factory.idleWorkers().isEmpty()) {
                        factory.stop();
                    }
                }
            }
        }
    }

    /** Null in a Spark that has them elsewhere: its workers take tasks in turns, which is slower and nothing else. */
    private static HashMap all(SparkEnv env) {
        try {
            Field found = SparkEnv.class.getDeclaredField("pythonWorkers");
            found.setAccessible(true);
            return (HashMap) found.get(env);
        } catch (ReflectiveOperationException error) {
            return null;
        }
    }
}
