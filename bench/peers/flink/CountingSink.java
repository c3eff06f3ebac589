import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.table.data.RowData;
import org.apache.flink.types.RowKind;

/**
 * Drops every result and counts it: a blackhole that can be held to the expected number. What is taken back is counted off;
 * where Flink sends no rows as they were before an update, an update changes no number.
 */
final class CountingSink implements Sink<RowData> {
    private static final List<Writer> writers = new CopyOnWriteArrayList<>();
    private static final AtomicLong firstResultMillis = new AtomicLong();

    /** So far; while writers are at work, about. */
    static long results() {
        return writers.stream().mapToLong(Writer::there).sum();
    }

    static long firstResultMillis() {
        return firstResultMillis.get();
    }

    @Override
    public SinkWriter<RowData> createWriter(WriterInitContext context) {
        Writer writer = new Writer();
        writers.add(writer);
        return writer;
    }

    private static final class Writer implements SinkWriter<RowData> {
        private long written;
        private long there; // what was inserted, less what was deleted
        private long after;
        private long before;

        @Override
        public void write(RowData row, Context context) {
            if (written++ == 0) {
                firstResultMillis.compareAndSet(0, System.currentTimeMillis());
            }
            RowKind kind = row.getRowKind();
            there += kind == RowKind.INSERT ? 1 : kind == RowKind.DELETE ? -1 : 0;
            after += kind == RowKind.UPDATE_AFTER ? 1 : 0;
            before += kind == RowKind.UPDATE_BEFORE ? 1 : 0;
        }

        @Override
        public void flush(boolean endOfInput) {}

        @Override
        public void close() {}

        long there() {
            return before == 0 ? there : there + after - before;
        }
    }
}
