import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.assigners.SimpleSplitAssigner;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.ProviderContext;
import org.apache.flink.table.connector.source.DataStreamScanProvider;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.connector.source.abilities.SupportsProjectionPushDown;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.utils.TypeConversions;
import org.apache.parquet.column.ColumnDescriptor;

/**
 * Tables of connector `events`: a folder of parquet files of rows that only come. Only the columns that a query names are
 * decoded. Two readers take the files in the order of their names, so that event time rises.
 */
public final class EventTables implements DynamicTableSourceFactory {
    /** The table of a folder: the columns of its files, and the watermark of its event time, if it has that column. */
    static Schema schema(Path folder, String time, String watermark) throws IOException {
        Schema.Builder columns = Schema.newBuilder();
        boolean timed = false;
        for (ColumnDescriptor column : ParquetRows.columns(example(folder))) {
            timed |= column.getPath()[0].equals(time);
            columns.column(column.getPath()[0], TypeConversions.fromLogicalToDataType(ParquetRows.type(column)));
        }
        return (timed ? columns.watermark(time, watermark) : columns).build();
    }

    private static Path example(Path folder) {
        return folder.toFile().listFiles()[0].toPath();
    }

    @Override
    public String factoryIdentifier() {
        return "events";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
        return Set.of();
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
        return Set.of(ChangesTables.PATH, ChangesTables.MARK);
    }

    @Override
    public DynamicTableSource createDynamicTableSource(Context context) {
        Configuration options = Configuration.fromMap(context.getCatalogTable().getOptions());
        int columns = DataType.getFieldCount(context.getPhysicalRowDataType());
        int[] all = IntStream.range(0, columns).toArray();
        return new Events(options.get(ChangesTables.PATH), options.get(ChangesTables.MARK), all);
    }

    private static final class Events implements ScanTableSource, SupportsProjectionPushDown {
        private final String folder;
        private final long rowsPerMark;
        private int[] wanted;

        Events(String folder, long rowsPerMark, int[] wanted) {
            this.folder = folder;
            this.rowsPerMark = rowsPerMark;
            this.wanted = wanted;
        }

        @Override
        public boolean supportsNestedProjection() {
            return false;
        }

        @Override
        public void applyProjection(int[][] projected, DataType type) {
            wanted = Arrays.stream(projected).mapToInt(path -> path[0]).toArray();
        }

        @Override
        public ChangelogMode getChangelogMode() {
            return ChangelogMode.insertOnly();
        }

        @Override
        public ScanRuntimeProvider getScanRuntimeProvider(ScanContext context) {
            return new DataStreamScanProvider() {
                @Override
                public DataStream<RowData> produceDataStream(
                        ProviderContext provided, StreamExecutionEnvironment flow) {
                    return flow.fromSource(source(), WatermarkStrategy.noWatermarks(), folder);
                }

                @Override
                public boolean isBounded() {
                    return true;
                }
            };
        }

        private FileSource<RowData> source() {
            try {
                ParquetRows rows = new ParquetRows(example(new File(folder).toPath()), rowsPerMark, wanted);
                return FileSource.forBulkFileFormat(rows, new org.apache.flink.core.fs.Path(folder))
                        .setFileEnumerator(ChangesTables.LastFirst::new)
                        .setSplitAssigner(SimpleSplitAssigner::new) // takes the last of them first
                        .build();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        @Override
        public DynamicTableSource copy() {
            return new Events(folder, rowsPerMark, wanted);
        }

        @Override
        public String asSummaryString() {
            return folder;
        }
    }
}
