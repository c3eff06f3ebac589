import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;

/** Flink's SQL join from topic to topic, exactly once, in one JVM (its local cluster), until it is ended. */
public final class FlinkPipe {
    /** Arguments: brokers, folder of checkpoints (a URI), milliseconds between checkpoints. */
    public static void main(String[] args) throws Exception {
        Configuration settings = new Configuration();
        settings.setString("execution.checkpointing.interval", args[2] + " ms");
        settings.setString("execution.checkpointing.dir", args[1]);
        settings.setString("state.backend.type", "hashmap");
        settings.setString("pipeline.object-reuse", "true");
        settings.setString("restart-strategy.type", "none");
        settings.setString("execution.buffer-timeout.interval", "1 ms");
        StreamExecutionEnvironment flow = StreamExecutionEnvironment.createLocalEnvironment(2, settings);
        StreamTableEnvironment tables = StreamTableEnvironment.create(flow, EnvironmentSettings.inStreamingMode());
        for (String name : new String[] {"a", "b"}) {
            tables.executeSql(
                    "CREATE TABLE " + name + " (k BIGINT, sent DOUBLE) WITH (" + common(args[0], name)
                            + ", 'scan.startup.mode' = 'earliest-offset', 'properties.group.id' = 'flink')");
        }
        tables.executeSql(
                "CREATE TABLE results (a_sent DOUBLE, b_sent DOUBLE) WITH (" + common(args[0], "results")
                        + ", 'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = 'flink'"
                        + ", 'properties.transaction.timeout.ms' = '60000')");
        tables.executeSql("INSERT INTO results SELECT a.sent, b.sent FROM a JOIN b ON a.k = b.k").await();
    }

    private static String common(String brokers, String topic) {
        return "'connector' = 'kafka', 'format' = 'json', 'topic' = '" + topic
                + "', 'properties.bootstrap.servers' = '" + brokers + "'";
    }
}
