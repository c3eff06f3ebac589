package dev.streamjoin;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.Serializable;
import java.net.SocketException;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.InternalRow;
import py4j.ClientServerConnection;
import py4j.GatewayServer;
import py4j.PythonClient;
import scala.collection.Iterator;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction2;
import scala.runtime.BoxedUnit;

/**
 * Takes a binary column to the driver, where the rows are few.
 *
 * `Dataset.collect` looks through the byte code of Spark's largest classes before each job, to clean closures
 * that hold too much, and describes the plan for a web page. That takes some 10 ms; what is here has no closures.
 */
public class Gather {
    private Gather() {}

    /**
     * Runs a job and returns the last column of all rows, by partition: lengths (4 bytes) and values in turn.
     * `server` is the one that Python has called.
     */
    public static byte[] last(Dataset rows, GatewayServer server) throws SocketException {
        org.apache.spark.sql.classic.Dataset planned = (org.apache.spark.sql.classic.Dataset) rows;
        RDD rdd = planned.queryExecution().toRdd();
        Found found = new Found(rdd.getNumPartitions());
        if (rdd.getNumPartitions() == 1) { // a task that comes alone
            Workers.again();
        }
        rdd.sparkContext().runJob(
            rdd, new Values(planned.schema().length() - 1), found, ClassTag$.MODULE$.apply(byte[].class));
        hurry(server);
        return found.all();
    }

    /**
     * Lets a long answer to this thread's caller go out without a pause. It is written 8 KiB at a time; by default,
     * the second waits until the first is acknowledged, which takes 40 ms.
     */
    private static void hurry(GatewayServer server) throws SocketException {
        Object client = server.getCallbackClient();
        if (client instanceof PythonClient) {
            ClientServerConnection answering = ((PythonClient) client).getPerThreadConnection();
            if (answering != null) {
                answering.getSocket().setTcpNoDelay(true);
            }
        }
    }

    /** What a task does. */
    private static class Values extends AbstractFunction2 implements Serializable {
        private final int column;

        Values(int column) {
            this.column = column;
        }

        @Override
        public Object apply(Object task, Object rows) {
            ByteArrayOutputStream found = new ByteArrayOutputStream();
            DataOutputStream written = new DataOutputStream(found);
            Iterator left = (Iterator) rows;
            try {
                while (left.hasNext()) {
                    byte[] value = ((InternalRow) left.next()).getBinary(column);
                    written.writeInt(value.length);
                    written.write(value);
                }
            } catch (IOException impossible) {
                throw new IllegalStateException(impossible);
            }
            return found.toByteArray();
        }
    }

    /** What the tasks have returned. */
    private static class Found extends AbstractFunction2 {
        private final byte[][] found;

        Found(int partitions) {
            found = new byte[partitions][];
        }

        @Override
        public Object apply(Object partition, Object value) {
            found[((Integer) partition).intValue()] = (byte[]) value;
            return BoxedUnit.UNIT;
        }

        byte[] all() {
            ByteArrayOutputStream all = new ByteArrayOutputStream();
            for (int i = 0; i < found.length; i++) {
                all.write(found[i], 0, found[i].length);
            }
            return all.toByteArray();
        }
    }
}
