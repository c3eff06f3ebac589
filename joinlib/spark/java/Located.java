package dev.streamjoin;

import org.apache.spark.Partition;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.InternalRow;
import scala.collection.Iterator;
import scala.collection.immutable.List$;
import scala.collection.immutable.Seq;
import scala.reflect.ClassTag$;

/**
 * Rows whose partitions each have a preferred executor, such as the one that has the indexes of its units. Spark
 * waits for it as long as spark.locality.wait says, and does not wait if the executor is gone.
 */
public class Located extends RDD {
    private final RDD rows;
    private final String[] executors;

    private Located(RDD rows, String[] executors) {
        super(rows, ClassTag$.MODULE$.apply(InternalRow.class));
        this.rows = rows;
        this.executors = executors;
    }

    /** Returns the rows with preferred executors: ids for the partitions in turn, comma-separated. */
    public static Dataset rows(Dataset rows, String executors) {
        org.apache.spark.sql.classic.Dataset planned = (org.apache.spark.sql.classic.Dataset) rows;
        RDD located = new Located(planned.queryExecution().toRdd(), executors.split(","));
        org.apache.spark.sql.classic.SparkSession session =
            (org.apache.spark.sql.classic.SparkSession) planned.sparkSession();
        return session.internalCreateDataFrame(located, planned.schema(), false);
    }

    @Override
    public Partition[] getPartitions() {
        return rows.partitions();
    }

    @Override
    public Iterator compute(Partition partition, TaskContext context) {
        return rows.iterator(partition, context);
    }

    /** The location in Spark's notation for a block that an executor holds; the host does not matter. */
    @Override
    public Seq getPreferredLocations(Partition partition) {
        return (Seq) List$.MODULE$.empty().$colon$colon("executor_any_" + executors[partition.index() % executors.length]);
    }
}
