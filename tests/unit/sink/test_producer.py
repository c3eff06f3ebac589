"""Which failures of a producer are waited out, and what is said of the others. No broker is there."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from joinlib.errors import NotReady, SpecError
from joinlib.sink.kafka.producer import TransactionalProducer
from tests.configs import results


class Failing:
    """Fails with these errors, then returns how often it was called."""

    def __init__(self, *codes: int) -> None:
        self.errors = [KafkaError(code) for code in codes]
        self.calls = 0

    def __call__(self, seconds: float) -> int:
        self.calls += 1
        if self.calls <= len(self.errors):
            raise KafkaException(self.errors[self.calls - 1])
        return self.calls


@pytest.fixture
def producer() -> TransactionalProducer:
    return TransactionalProducer(results("127.0.0.1:1", "t"), 0, patience_s=0.3)


def test_what_may_pass_is_waited_out(producer: TransactionalProducer) -> None:
    """A coordinator that moves, a broker that restarts."""
    assert producer.persist("doing", Failing(KafkaError.NOT_COORDINATOR, KafkaError._TRANSPORT), 60.0) == 3


def test_what_does_not_pass_in_time(producer: TransactionalProducer) -> None:
    """It may later: a run that starts again goes on."""
    call = Failing(*[KafkaError.NOT_COORDINATOR] * 99)
    with pytest.raises(NotReady, match="output topic t, doing"):
        producer.persist("doing", call)
    assert 1 < call.calls < 99


def test_a_refusal_is_told_at_once(producer: TransactionalProducer) -> None:
    """To wait would not help."""
    call = Failing(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(SpecError, match=r"output topic t, doing: .*; grant it to this user"):
        producer.persist("doing", call, 60.0)
    assert call.calls == 1
