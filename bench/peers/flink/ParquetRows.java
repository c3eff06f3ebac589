import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.src.FileSourceSplit;
import org.apache.flink.connector.file.src.reader.BulkFormat;
import org.apache.flink.connector.file.src.util.ArrayResultIterator;
import org.apache.flink.table.data.DecimalData;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.DateType;
import org.apache.flink.table.types.logical.DecimalType;
import org.apache.flink.table.types.logical.IntType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.TimestampType;
import org.apache.flink.table.types.logical.VarCharType;
import org.apache.flink.types.RowKind;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.ColumnReader;
import org.apache.parquet.column.impl.ColumnReadStoreImpl;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.io.LocalInputFile;
import org.apache.parquet.io.api.Converter;
import org.apache.parquet.io.api.GroupConverter;
import org.apache.parquet.io.api.PrimitiveConverter;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.DateLogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.DecimalLogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.TimestampLogicalTypeAnnotation;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.parquet.schema.Type;

/**
 * Reads columns of INT, BIGINT, DECIMAL, DATE, STRING and TIMESTAMP from the same parquet files as everybody, column by column, into Flink's own
 * internal rows: no conversion follows. The wheel brings no parquet format, so the jars that pyspark brings decode.
 *
 * <p>Where rows have kinds, the last column says which (`+I`, `-U`, ...) and is not part of the row.
 *
 * <p>Law: counts the rows it hands over and calls back each time another `rowsPerMark` are through.
 */
final class ParquetRows implements BulkFormat<RowData, FileSourceSplit> {
    private static final int ROWS_PER_FETCH = 2048;
    private static final AtomicLong rowsRead = new AtomicLong();

    /** What rows are: inserts all; of the kind that they say; the same, without rows as they were before an update. */
    enum Kinds {
        NONE,
        ALL,
        UPSERT
    }

    private final long rowsPerMark;
    private final Kinds kinds;
    private final LogicalType[] types;
    private final String[] names;
    private final int[] wanted; // null: all

    /** Rows as `example`, one of the files, has them. */
    ParquetRows(Path example, long rowsPerMark, Kinds kinds) throws IOException {
        this.rowsPerMark = rowsPerMark;
        this.kinds = kinds;
        List<ColumnDescriptor> columns = shown(columns(example), kinds);
        this.types = columns.stream().map(ParquetRows::type).toArray(LogicalType[]::new);
        this.names = columns.stream().map(column -> column.getPath()[0]).toArray(String[]::new);
        this.wanted = null;
    }

    /** Inserts of these columns only, in that order: others are not decoded. */
    ParquetRows(Path example, long rowsPerMark, int[] wanted) throws IOException {
        this.rowsPerMark = rowsPerMark;
        this.kinds = Kinds.NONE;
        List<ColumnDescriptor> columns = columns(example);
        this.types = Arrays.stream(wanted).mapToObj(at -> type(columns.get(at))).toArray(LogicalType[]::new);
        this.names = Arrays.stream(wanted).mapToObj(at -> columns.get(at).getPath()[0]).toArray(String[]::new);
        this.wanted = wanted;
    }

    static List<ColumnDescriptor> columns(Path example) throws IOException {
        try (ParquetFileReader file = ParquetFileReader.open(new LocalInputFile(example))) {
            return file.getFileMetaData().getSchema().getColumns();
        }
    }

    static long rowsRead() {
        return rowsRead.get();
    }

    private static List<ColumnDescriptor> shown(List<ColumnDescriptor> columns, Kinds kinds) {
        return kinds == Kinds.NONE ? columns : columns.subList(0, columns.size() - 1);
    }

    static LogicalType type(ColumnDescriptor column) {
        if (timed(column)) {
            return new TimestampType(3);
        }
        LogicalTypeAnnotation meant = column.getPrimitiveType().getLogicalTypeAnnotation();
        if (meant instanceof DecimalLogicalTypeAnnotation) {
            DecimalLogicalTypeAnnotation decimal = (DecimalLogicalTypeAnnotation) meant;
            return new DecimalType(decimal.getPrecision(), decimal.getScale());
        }
        if (meant instanceof DateLogicalTypeAnnotation) {
            return new DateType();
        }
        switch (column.getPrimitiveType().getPrimitiveTypeName()) {
            case BINARY:
                return new VarCharType(VarCharType.MAX_LENGTH);
            case INT32:
                return new IntType();
            default:
                return new BigIntType();
        }
    }

    private static boolean timed(ColumnDescriptor column) {
        return column.getPrimitiveType().getLogicalTypeAnnotation() instanceof TimestampLogicalTypeAnnotation;
    }

    @Override
    public Reader<RowData> createReader(Configuration config, FileSourceSplit split) throws IOException {
        return new FileReader(new File(split.path().getPath()), rowsPerMark, kinds, wanted);
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
        return InternalTypeInfo.ofFields(types, names);
    }

    private static final class FileReader implements Reader<RowData> {
        private final ParquetFileReader file;
        private final long rowsPerMark;
        private final List<ColumnDescriptor> columns;
        private final MessageType schema;
        private final ColumnReader[] readers;
        private final Kinds kinds;
        private long rowsLeft; // of the row group at hand

        FileReader(File path, long rowsPerMark, Kinds kinds, int[] wanted) throws IOException {
            this.file = ParquetFileReader.open(new LocalInputFile(path.toPath()));
            this.rowsPerMark = rowsPerMark;
            this.kinds = kinds;
            MessageType whole = file.getFileMetaData().getSchema();
            this.columns = wanted == null ? whole.getColumns() : chosen(whole.getColumns(), wanted);
            this.schema = wanted == null ? whole : some(whole, wanted);
            file.setRequestedSchema(schema);
            this.readers = new ColumnReader[columns.size()];
        }

        private static MessageType some(MessageType whole, int[] wanted) {
            Type[] fields = Arrays.stream(wanted).mapToObj(whole::getType).toArray(Type[]::new);
            return new MessageType(whole.getName(), fields);
        }

        private static List<ColumnDescriptor> chosen(List<ColumnDescriptor> all, int[] wanted) {
            return Arrays.stream(wanted).mapToObj(all::get).toList();
        }

        @Override
        public RecordIterator<RowData> readBatch() throws IOException {
            if (rowsLeft == 0 && !nextRowGroup()) {
                return null;
            }
            int rows = (int) Math.min(ROWS_PER_FETCH, rowsLeft);
            RowData[] fetched = new RowData[rows];
            int taken = 0;
            for (int row = 0; row < rows; row++) {
                RowData next = nextRow();
                if (kinds != Kinds.UPSERT || next.getRowKind() != RowKind.UPDATE_BEFORE) {
                    fetched[taken++] = next;
                }
            }
            rowsLeft -= rows;
            mark(rows);
            ArrayResultIterator<RowData> iterator = new ArrayResultIterator<>();
            iterator.set(fetched, taken, 0, 0);
            return iterator;
        }

        @Override
        public void close() throws IOException {
            file.close();
        }

        private RowData nextRow() {
            int fields = kinds == Kinds.NONE ? readers.length : readers.length - 1;
            GenericRowData row = new GenericRowData(fields);
            for (int field = 0; field < fields; field++) {
                row.setField(field, value(columns.get(field), readers[field]));
                readers[field].consume();
            }
            if (fields < readers.length) {
                row.setRowKind(kind(readers[fields].getBinary().getBytes()));
                readers[fields].consume();
            }
            return row;
        }

        private static RowKind kind(byte[] word) {
            boolean update = word[1] == 'U';
            return word[0] == '+'
                    ? (update ? RowKind.UPDATE_AFTER : RowKind.INSERT)
                    : (update ? RowKind.UPDATE_BEFORE : RowKind.DELETE);
        }

        private static Object value(ColumnDescriptor column, ColumnReader reader) {
            if (reader.getCurrentDefinitionLevel() < column.getMaxDefinitionLevel()) {
                return null;
            }
            if (timed(column)) {
                return TimestampData.fromEpochMillis(reader.getLong() / 1000);
            }
            PrimitiveTypeName stored = column.getPrimitiveType().getPrimitiveTypeName();
            if (stored == PrimitiveTypeName.BINARY) {
                return StringData.fromBytes(reader.getBinary().getBytes());
            }
            LogicalTypeAnnotation meant = column.getPrimitiveType().getLogicalTypeAnnotation();
            if (meant instanceof DecimalLogicalTypeAnnotation) {
                DecimalLogicalTypeAnnotation decimal = (DecimalLogicalTypeAnnotation) meant;
                long unscaled = stored == PrimitiveTypeName.INT32 ? reader.getInteger() : reader.getLong();
                return DecimalData.fromUnscaledLong(unscaled, decimal.getPrecision(), decimal.getScale());
            }
            return stored == PrimitiveTypeName.INT32 ? (Object) reader.getInteger() : (Object) reader.getLong();
        }

        private boolean nextRowGroup() throws IOException {
            PageReadStore pages = file.readNextRowGroup();
            if (pages == null) {
                return false;
            }
            String writer = file.getFileMetaData().getCreatedBy();
            ColumnReadStoreImpl store = new ColumnReadStoreImpl(pages, new NoConverter(), schema, writer);
            for (int field = 0; field < readers.length; field++) {
                readers[field] = store.getColumnReader(columns.get(field));
            }
            rowsLeft = pages.getRowCount();
            return true;
        }

        private void mark(int rows) {
            long after = rowsRead.addAndGet(rows);
            if (after / rowsPerMark > (after - rows) / rowsPerMark) {
                Main.markBatch(System.nanoTime(), after);
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
