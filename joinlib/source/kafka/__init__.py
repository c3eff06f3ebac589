"""Kafka topics as inputs. A slice is a range of offsets of one partition.

brokers    how far every partition reaches            called by the driver
ranges     a log of that, cut into slices             pure
consumer   the messages of a range                    in any process
decode     messages -> rows, bad ones named           pure
"""

from joinlib.source.kafka.config import KafkaConfig

__all__ = ["KafkaConfig"]
