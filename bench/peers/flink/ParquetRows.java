import java.io.File;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.src.FileSourceSplit;
import org.apache.flink.connector.file.src.reader.BulkFormat;
import org.apache.flink.connector.file.src.util.ArrayResultIterator;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.VarCharType;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.ColumnReader;
import org.apache.parquet.column.impl.ColumnReadStoreImpl;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.io.LocalInputFile;
import org.apache.parquet.io.api.Converter;
import org.apache.parquet.io.api.GroupConverter;
import org.apache.parquet.io.api.PrimitiveConverter;
import org.apache.parquet.schema.MessageType;

/**
 * Reads (k BIGINT, v BIGINT, s STRING) from the same parquet files as everybody, column by column, into Flink's own
 * internal rows: no conversion follows. The wheel brings no parquet format, so the jars that pyspark brings decode.
 *
 * <p>Law: counts the rows it hands over and calls back each time another `rowsPerMark` are through.
 */
final class ParquetRows implements BulkFormat<RowData, FileSourceSplit> {
    private static final int ROWS_PER_FETCH = 2048;
    private static final AtomicLong rowsRead = new AtomicLong();

    private final long rowsPerMark;

    ParquetRows(long rowsPerMark) {
        this.rowsPerMark = rowsPerMark;
    }

    static long rowsRead() {
        return rowsRead.get();
    }

    @Override
    public Reader<RowData> createReader(Configuration config, FileSourceSplit split) throws IOException {
        return new FileReader(new File(split.path().getPath()), rowsPerMark);
    }

    @Override
    public Reader<RowData> restoreReader(Configuration config, FileSourceSplit split) {
        throw new UnsupportedOperationException("a benchmark run is not restored");
    }

    @Override
    public boolean isSplittable() {
        return false;
    }

    @Override
    public TypeInformation<RowData> getProducedType() {
        LogicalType[] types = {new BigIntType(), new BigIntType(), new VarCharType(VarCharType.MAX_LENGTH)};
        return InternalTypeInfo.ofFields(types, new String[] {"k", "v", "s"});
    }

    private static final class FileReader implements Reader<RowData> {
        private final ParquetFileReader file;
        private final long rowsPerMark;
        private ColumnReader keys, values, texts;
        private long rowsLeft; // of the row group at hand

        FileReader(File path, long rowsPerMark) throws IOException {
            this.file = ParquetFileReader.open(new LocalInputFile(path.toPath()));
            this.rowsPerMark = rowsPerMark;
        }

        @Override
        public RecordIterator<RowData> readBatch() throws IOException {
            if (rowsLeft == 0 && !nextRowGroup()) {
                return null;
            }
            int rows = (int) Math.min(ROWS_PER_FETCH, rowsLeft);
            RowData[] fetched = new RowData[rows];
            for (int row = 0; row < rows; row++) {
                fetched[row] = nextRow();
            }
            rowsLeft -= rows;
            mark(rows);
            ArrayResultIterator<RowData> iterator = new ArrayResultIterator<>();
            iterator.set(fetched, rows, 0, 0);
            return iterator;
        }

        @Override
        public void close() throws IOException {
            file.close();
        }

        private RowData nextRow() {
            RowData row =
                    GenericRowData.of(
                            keys.getLong(), values.getLong(), StringData.fromBytes(texts.getBinary().getBytes()));
            keys.consume();
            values.consume();
            texts.consume();
            return row;
        }

        private boolean nextRowGroup() throws IOException {
            PageReadStore pages = file.readNextRowGroup();
            if (pages == null) {
                return false;
            }
            MessageType schema = file.getFileMetaData().getSchema();
            String writer = file.getFileMetaData().getCreatedBy();
            ColumnReadStoreImpl store = new ColumnReadStoreImpl(pages, new NoConverter(), schema, writer);
            List<ColumnDescriptor> columns = schema.getColumns();
            keys = store.getColumnReader(columns.get(0));
            values = store.getColumnReader(columns.get(1));
            texts = store.getColumnReader(columns.get(2));
            rowsLeft = pages.getRowCount();
            return true;
        }

        private void mark(int rows) {
            long after = rowsRead.addAndGet(rows);
            if (after / rowsPerMark > (after - rows) / rowsPerMark) {
                Main.markBatch(System.nanoTime());
            }
        }
    }

    /** The store asks for one; values are taken from the column readers instead. */
    private static final class NoConverter extends GroupConverter {
        @Override
        public Converter getConverter(int field) {
            return new PrimitiveConverter() {};
        }

        @Override
        public void start() {}

        @Override
        public void end() {}
    }
}
