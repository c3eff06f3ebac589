import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
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
        long rowsPerMark = Long.parseLong(args[3]);
        StreamExecutionEnvironment flow =
                StreamExecutionEnvironment.createLocalEnvironment(2, configuration(Path.of(args[2])));
        StreamTableEnvironment tables =
                StreamTableEnvironment.create(flow, EnvironmentSettings.inStreamingMode());
        for (String name : Arrays.asList(args).subList(6, args.length)) {
            Path folder = Path.of(args[0]).resolve(name);
            if (args[5].equals("none")) {
                tables.createTemporaryView(name, input(flow, name, folder.toFile(), rowsPerMark));
            } else {
                tables.createTemporaryTable(name, args[5].equals("events") ? events(folder, rowsPerMark) : changes(folder, args));
            }
        }
        Table asked = tables.sqlQuery(Files.readString(Path.of(args[1])));
        System.err.println(asked.explain(ExplainDetail.CHANGELOG_MODE));
        List<Integer> joins = joins(asked);
        long began = System.nanoTime();
        stopAfter(Long.parseLong(args[4]), began, rowsPerMark, joins);
        asked.insertInto(TableDescriptor.forConnector("bench").build()).execute().await();
        System.out.println(outcome(began, System.nanoTime(), rowsPerMark, false, joins));
    }

    /** An input that sends changes, or upserts of the key v. */
    private static TableDescriptor changes(Path folder, String[] args) {
        Schema columns =
                Schema.newBuilder()
                        .column("k", "BIGINT")
                        .column("v", "BIGINT NOT NULL")
                        .column("s", "STRING")
                        .primaryKey("v")
                        .build();
        return TableDescriptor.forConnector("bench")
                .schema(columns)
                .option(ChangesTables.PATH, folder.toString())
                .option(ChangesTables.MARK, Long.valueOf(args[3]))
                .option(ChangesTables.MODE, args[5])
                .build();
    }

    /** An input of rows that only come, with a time if it has that column; what comes out may change. */
    private static TableDescriptor events(Path folder, long rowsPerMark) throws IOException {
        return TableDescriptor.forConnector("events")
                .schema(EventTables.schema(folder, "dateTime", "`dateTime` - INTERVAL '4' SECOND"))
                .option(ChangesTables.PATH, folder.toString())
                .option(ChangesTables.MARK, rowsPerMark)
                .build();
    }

    /** How many inputs each join of the plan has, the largest first: what the planner made of the query. */
    private static List<Integer> joins(Table asked) {
        String plan = asked.explain();
        List<Integer> inputs = new ArrayList<>();
        for (String line : plan.substring(plan.indexOf("== Optimized Execution Plan ==")).split("\n")) {
            if (line.contains("MultiJoin(")) {
                inputs.add(1 + line.replaceAll(".*joinTypes=\\[(.*?)\\].*", "$1").split(",").length);
            } else if (line.matches(".*[^a-zA-Z](Interval)?Join\\(.*")) {
                inputs.add(2);
            }
        }
        inputs.sort(Collections.reverseOrder());
        return inputs;
    }

    /** Says how far it has come, and ends. */
    private static void stopAfter(long seconds, long began, long rowsPerMark, List<Integer> joins) {
        Thread watch =
                new Thread(
                        () -> {
                            try {
                                Thread.sleep(Duration.ofSeconds(seconds).toMillis());
                            } catch (InterruptedException e) {
                                return;
                            }
                            System.out.println(outcome(began, System.nanoTime(), rowsPerMark, true, joins));
                            System.out.flush();
                            Runtime.getRuntime().halt(0);
                        });
        watch.setDaemon(true);
        watch.start();
    }

    /** Another batch's worth of rows has been read; whoever asked for it is told at once, since the process may die. */
    static void markBatch(long nanos, long rows) {
        batchNanos.add(nanos);
        String file = System.getProperty("bench.progress");
        if (file != null) {
            String line =
                    String.format(
                            "{\"at\": %.3f, \"rows\": %d, \"results\": %d}%n",
                            System.currentTimeMillis() / 1e3, rows, CountingSink.results());
            try {
                Files.writeString(Path.of(file), line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
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

    private static String outcome(
            long began, long ended, long rowsPerMark, boolean stopped, List<Integer> joins) {
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
                        + " \"joins\": %s, \"batches\": %s}",
                ParquetRows.rowsRead(),
                CountingSink.results(),
                (ended - began) / 1e9,
                CountingSink.firstResultMillis(),
                stopped,
                joins,
                batches);
    }
}
