package dev.streamjoin;

import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.filter.AbstractFilter;

/**
 * Leaves one error out of the driver's log, with its 25 lines: on Kubernetes, Spark waits a second for its own pod to be
 * ready, goes on, and calls that uncaught. The pod is never ready by then: it is once its query runs.
 */
public class NotReadyYet extends AbstractFilter {
    private static final String SAID = "io.fabric8.kubernetes.client.KubernetesClientTimeoutException";

    /** Begins to leave it out. */
    public static void ignore() {
        if (LogManager.getContext(false) instanceof LoggerContext) { // else somebody else writes the log
            LoggerContext context = (LoggerContext) LogManager.getContext(false);
            context.getConfiguration().getRootLogger().addFilter(new NotReadyYet());
            context.updateLoggers();
        }
    }

    @Override
    public Result filter(LogEvent event) {
        Throwable thrown = event.getThrown();
        return thrown != null && thrown.getClass().getName().equals(SAID) ? Result.DENY : Result.NEUTRAL;
    }
}
