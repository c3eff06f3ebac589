package dev.streamjoin;

import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientException;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.internal.LogEntry;
import org.apache.spark.scheduler.cluster.k8s.ExecutorPodsAllocator;
import org.apache.spark.scheduler.cluster.k8s.ExecutorPodsSnapshotsStore;
import org.apache.spark.scheduler.cluster.k8s.KubernetesClusterSchedulerBackend;
import org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBuilder;
import org.apache.spark.util.Clock;
import scala.collection.immutable.Seq;

/**
 * Makes executors' pods as Spark does, and tries again for as long as the API server refuses them, as a quota does.
 * Spark's own counts each refusal like an executor that has failed: after ten of them, a second apart, it ends the
 * driver, whose other executors work.
 */
public class PatientAllocator extends ExecutorPodsAllocator {
    private static volatile String refusal = "";
    private String said = ""; // of the current attempt

    public PatientAllocator(
            SparkConf conf,
            SecurityManager security,
            KubernetesExecutorBuilder builder,
            KubernetesClient client,
            ExecutorPodsSnapshotsStore store,
            Clock clock) {
        super(conf, security, builder, client, store, clock);
        refusal = "";
    }

    /** Returns why the last attempt made no pod; empty if nothing was refused. Called by the driver. */
    public static String refusal() {
        return refusal;
    }

    @Override
    public void onNewSnapshots(String application, KubernetesClusterSchedulerBackend backend, Seq snapshots) {
        said = "";
        super.onNewSnapshots(application, backend, snapshots);
        refusal = said;
    }

    @Override
    public int registerPodCreationFailure() {
        return totalFailedPodCreations().incrementAndGet();
    }

    /** Logs a refusal once, and not each second with its 50 lines. */
    @Override
    public void logError(LogEntry entry, Throwable error) {
        String words = words(error);
        boolean known = words.equals(refusal) || words.equals(said);
        said = words;
        if (!known) {
            super.logError(entry, error);
        }
    }

    /** Returns the API server's words, without the number that each attempt has in the pod's name. */
    private static String words(Throwable error) {
        String words = String.valueOf(error.getMessage());
        if (error instanceof KubernetesClientException) {
            KubernetesClientException refused = (KubernetesClientException) error;
            if (refused.getStatus() != null && refused.getStatus().getMessage() != null) {
                words = refused.getStatus().getMessage();
            }
        }
        return words.replaceAll("-exec-[0-9]+\"", "-exec-*\"");
    }
}
