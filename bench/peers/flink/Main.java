import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.StringJoiner;
import java.util.stream.Stream;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.ExplainDetail;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.TableDescriptor;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.types.DataType;

/**
 * Flink's SQL join of all inputs of a data folder, parallelism 2, in one JVM (its local cluster).
 *
 * <p>Flink has no batches. Marks stand in for them: the moment at which another batch's worth of rows has been read;
 * the last one is the end of the job. Back pressure keeps reading within the network buffers of joining.
 */
public final class Main {
    private static final List<Long> batchNanos = Collections.synchronizedList(new ArrayList<>());

    /**
     * Arguments: data folder, query, configuration file (key: value lines), rows per mark, limit in seconds, what rows are (none,
     * retract, upsert, or events), inputs.
     */
    public static void main(String[] args) throws Exception {
        Path data = Path.of(args[0]);
        long rowsPerMark = Long.parseLong(args[3]);
        StreamExecutionEnvironment flow =
                StreamExecutionEnvironment.createLocalEnvironment(2, configuration(Path.of(args[2])));
        StreamTableEnvironment tables =
                StreamTableEnvironment.create(flow, EnvironmentSettings.inStreamingMode());
        List<String> inputs = Arrays.asList(args).subList(6, args.length);
        if (args[5].equals("events")) {
            events(tables, args, inputs);
            return;
        }
        if (!args[5].equals("none")) {
            changes(tables, args, inputs);
            return;
        }
        for (String name : inputs) {
            tables.createTemporaryView(name, input(flow, name, data.resolve(name).toFile(), rowsPerMark));
        }
        Table joined = tables.sqlQuery(Files.readString(Path.of(args[1])));
        DataType internalRow = joined.getResolvedSchema().toPhysicalRowDataType().bridgedTo(RowData.class);
        DataStream<RowData> results = tables.toDataStream(joined, internalRow);
        results.sinkTo(new CountingSink());
        System.err.println(joined.explain());
        long began = System.nanoTime();
        stopAfter(Long.parseLong(args[4]), began, rowsPerMark);
        flow.execute("join");
        System.out.println(outcome(began, System.nanoTime(), rowsPerMark, false));
    }

    /** The inputs send changes, or upserts of the key v. */
    private static void changes(StreamTableEnvironment tables, String[] args, List<String> inputs) throws Exception {
        Path data = Path.of(args[0]);
        for (String name : inputs) {
            Schema columns =
                    Schema.newBuilder()
                            .column("k", "BIGINT")
                            .column("v", "BIGINT NOT NULL")
                            .column("s", "STRING")
                            .primaryKey("v")
                            .build();
            tables.createTemporaryTable(
                    name,
                    TableDescriptor.forConnector("bench")
                            .schema(columns)
                            .option(ChangesTables.PATH, data.resolve(name).toString())
                            .option(ChangesTables.MARK, Long.valueOf(args[3]))
                            .option(ChangesTables.MODE, args[5])
                            .build());
        }
        Table joined = tables.sqlQuery(Files.readString(Path.of(args[1])));
        System.err.println(joined.explain(ExplainDetail.CHANGELOG_MODE));
        long began = System.nanoTime();
        stopAfter(Long.parseLong(args[4]), began, Long.parseLong(args[3]));
        joined.insertInto(TableDescriptor.forConnector("bench").build()).execute().await();
        System.out.println(outcome(began, System.nanoTime(), Long.parseLong(args[3]), false));
    }

    /** The inputs are events with times; what comes out may change. */
    private static void events(StreamTableEnvironment tables, String[] args, List<String> inputs) throws Exception {
        for (String name : inputs) {
            Path folder = Path.of(args[0]).resolve(name);
            tables.createTemporaryTable(
                    name,
                    TableDescriptor.forConnector("events")
                            .schema(EventTables.schema(folder, "dateTime", "`dateTime` - INTERVAL '4' SECOND"))
                            .option(ChangesTables.PATH, folder.toString())
                            .option(ChangesTables.MARK, Long.valueOf(args[3]))
                            .build());
        }
        Table asked = tables.sqlQuery(Files.readString(Path.of(args[1])));
        System.err.println(asked.explain(ExplainDetail.CHANGELOG_MODE));
        long began = System.nanoTime();
        stopAfter(Long.parseLong(args[4]), began, Long.parseLong(args[3]));
        asked.insertInto(TableDescriptor.forConnector("bench").build()).execute().await();
        System.out.println(outcome(began, System.nanoTime(), Long.parseLong(args[3]), false));
    }

    /** Says how far it has come, and ends. */
    private static void stopAfter(long seconds, long began, long rowsPerMark) {
        Thread watch =
                new Thread(
                        () -> {
                            try {
                                Thread.sleep(Duration.ofSeconds(seconds).toMillis());
                            } catch (InterruptedException e) {
                                return;
                            }
                            System.out.println(outcome(began, System.nanoTime(), rowsPerMark, true));
                            System.out.flush();
                            Runtime.getRuntime().halt(0);
                        });
        watch.setDaemon(true);
        watch.start();
    }

    static void markBatch(long nanos) {
        batchNanos.add(nanos);
    }

    private static Configuration configuration(Path file) throws Exception {
        Configuration configuration = new Configuration();
        for (String line : Files.readAllLines(file)) {
            String[] pair = line.split(": ", 2);
            configuration.setString(pair[0], pair[1]);
        }
        return configuration;
    }

    private static DataStream<RowData> input(
            StreamExecutionEnvironment flow, String name, File folder, long rowsPerMark)
            throws IOException {
        Path example;
        try (Stream<Path> files = Files.list(folder.toPath())) {
            example = files.findFirst().orElseThrow();
        }
        org.apache.flink.core.fs.Path path = org.apache.flink.core.fs.Path.fromLocalFile(folder);
        FileSource<RowData> source =
                FileSource.forBulkFileFormat(new ParquetRows(example, rowsPerMark, ParquetRows.Kinds.NONE), path).build();
        return flow.fromSource(source, WatermarkStrategy.noWatermarks(), name);
    }

    private static String outcome(long began, long ended, long rowsPerMark, boolean stopped) {
        StringJoiner batches = new StringJoiner(", ", "[", "]");
        long previous = began;
        for (int batch = 0; batch < batchNanos.size(); batch++) {
            boolean last = batch == batchNanos.size() - 1;
            long now = last ? ended : batchNanos.get(batch);
            batches.add(
                    String.format("{\"rows\": %d, \"seconds\": %.4f}", rowsPerMark, (now - previous) / 1e9));
            previous = now;
        }
        return String.format(
                "{\"rows\": %d, \"results\": %d, \"seconds_total\": %.3f, \"first_result_millis\": %d, \"stopped\": %b,"
                        + " \"batches\": %s}",
                ParquetRows.rowsRead(),
                CountingSink.results(),
                (ended - began) / 1e9,
                CountingSink.firstResultMillis(),
                stopped,
                batches);
    }
}
