package dev.streamjoin;

import java.lang.reflect.Field;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.python.PythonWorkerFactory;
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
