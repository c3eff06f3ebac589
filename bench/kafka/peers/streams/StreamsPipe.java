import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;

/**
 * Kafka Streams' join from topic to topic, exactly once, until it is ended. It joins by the messages' keys and within a
 * window, here of an hour: a join without one it does not have.
 */
public final class StreamsPipe {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Arguments: brokers, folder of its state, milliseconds between commits. */
    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("application.id", "streams");
        settings.put("bootstrap.servers", args[0]);
        settings.put("state.dir", args[1]);
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("commit.interval.ms", args[2]);
        settings.put("num.stream.threads", "2");
        settings.put("replication.factor", "1");
        settings.put("auto.offset.reset", "earliest");
        settings.put("producer.linger.ms", "1");
        Serde<byte[]> bytes = Serdes.ByteArray();
        StreamsBuilder plan = new StreamsBuilder();
        KStream<byte[], byte[]> a = plan.stream("a", Consumed.with(bytes, bytes));
        KStream<byte[], byte[]> b = plan.stream("b", Consumed.with(bytes, bytes));
        JoinWindows hour = JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofHours(1));
        a.join(b, StreamsPipe::joined, hour, StreamJoined.with(bytes, bytes, bytes))
                .to("results", Produced.with(bytes, bytes));
        KafkaStreams run = new KafkaStreams(plan.build(), settings);
        run.start();
        Thread.currentThread().join();
    }

    private static byte[] joined(byte[] a, byte[] b) {
        try {
            double one = JSON.readTree(a).get("sent").doubleValue(), other = JSON.readTree(b).get("sent").doubleValue();
            return ("{\"a_sent\":" + one + ",\"b_sent\":" + other + "}").getBytes();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
