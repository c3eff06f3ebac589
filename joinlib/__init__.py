"""StreamJoin's library: streaming joins written as SQL. Nothing here but `joinlib.spark` knows Spark."""
