import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.FileSourceSplit;
import org.apache.flink.connector.file.src.assigners.SimpleSplitAssigner;
import org.apache.flink.connector.file.src.enumerate.FileEnumerator;
import org.apache.flink.connector.file.src.enumerate.NonSplittingRecursiveEnumerator;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.ProviderContext;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.SinkV2Provider;
import org.apache.flink.table.connector.source.DataStreamScanProvider;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DynamicTableSinkFactory;
import org.apache.flink.table.factories.DynamicTableSourceFactory;

/**
 * Tables of connector `bench`: a folder of parquet files whose column `op` says what each row is, and a sink that counts.
 *
 * <p>The rows reach Flink's operators as they are decoded, with their kind; nothing is converted. One reader takes the files
 * of an input in the order of their names, since an update must not overtake the row that it is of.
 */
public final class ChangesTables implements DynamicTableSourceFactory, DynamicTableSinkFactory {
    static final ConfigOption<String> PATH = ConfigOptions.key("path").stringType().noDefaultValue();
    static final ConfigOption<Long> MARK = ConfigOptions.key("mark").longType().defaultValue(Long.MAX_VALUE);
    static final ConfigOption<String> MODE = ConfigOptions.key("mode").stringType().defaultValue("retract");

    @Override
    public String factoryIdentifier() {
        return "bench";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
        return Set.of();
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
        return Set.of(PATH, MARK, MODE);
    }

    @Override
    public DynamicTableSource createDynamicTableSource(Context context) {
        org.apache.flink.configuration.Configuration options =
                org.apache.flink.configuration.Configuration.fromMap(context.getCatalogTable().getOptions());
        return new Changes(options.get(PATH), options.get(MARK), options.get(MODE).equals("upsert"));
    }

    @Override
    public DynamicTableSink createDynamicTableSink(Context context) {
        return new Counted();
    }

    private record Changes(String folder, long rowsPerMark, boolean upsert) implements ScanTableSource {
        @Override
        public ChangelogMode getChangelogMode() {
            return upsert ? ChangelogMode.upsert() : ChangelogMode.all();
        }

        @Override
        public ScanRuntimeProvider getScanRuntimeProvider(ScanContext context) {
            return new DataStreamScanProvider() {
                @Override
                public DataStream<RowData> produceDataStream(
                        ProviderContext provided, StreamExecutionEnvironment flow) {
                    return flow.fromSource(source(), WatermarkStrategy.noWatermarks(), folder).setParallelism(1);
                }

                @Override
                public boolean isBounded() {
                    return true;
                }
            };
        }

        private FileSource<RowData> source() {
            try {
                ParquetRows.Kinds kinds = upsert ? ParquetRows.Kinds.UPSERT : ParquetRows.Kinds.ALL;
                File example = new File(folder).listFiles()[0];
                return FileSource.forBulkFileFormat(
                                new ParquetRows(example.toPath(), rowsPerMark, kinds), new Path(folder))
                        .setFileEnumerator(LastFirst::new)
                        .setSplitAssigner(SimpleSplitAssigner::new) // takes the last of them first
                        .build();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        @Override
        public DynamicTableSource copy() {
            return this;
        }

        @Override
        public String asSummaryString() {
            return folder;
        }
    }

    static final class LastFirst implements FileEnumerator {
        @Override
        public Collection<FileSourceSplit> enumerateSplits(Path[] paths, int desired) throws IOException {
            List<FileSourceSplit> splits =
                    new ArrayList<>(new NonSplittingRecursiveEnumerator().enumerateSplits(paths, desired));
            splits.sort(Comparator.comparing((FileSourceSplit split) -> split.path().getName()).reversed());
            return splits;
        }
    }

    record Counted() implements DynamicTableSink {
        @Override
        public ChangelogMode getChangelogMode(ChangelogMode requested) {
            return requested;
        }

        @Override
        public SinkRuntimeProvider getSinkRuntimeProvider(Context context) {
            return SinkV2Provider.of(new CountingSink());
        }

        @Override
        public DynamicTableSink copy() {
            return this;
        }

        @Override
        public String asSummaryString() {
            return "counted";
        }
    }
}
