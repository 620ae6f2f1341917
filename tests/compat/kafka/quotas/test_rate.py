"""Rates over samples, and tokens: the numbers that Kafka works out."""

from __future__ import annotations

from logstore.compat.kafka.quotas.rate import TokenBucket, Window, WindowedRate

WINDOW = Window(11, 1000)


def test_a_first_burst_counts_as_ten_seconds() -> None:
    """What was recorded once is spread over all samples but one."""
    rate = WindowedRate(WINDOW)
    rate.record(1000, 0)
    assert rate.throttle_ms(100, 0) == 0
    rate.record(500, 0)
    assert rate.throttle_ms(100, 0) == 5000  # 150 a second is half too much, of 10 s
    assert rate.throttle_ms(100, 5000) == 5000  # the oldest sample starts 5 s ago, and 5 are added


def test_an_old_sample_is_forgotten() -> None:
    """After the whole window nothing is left of it."""
    rate = WindowedRate(WINDOW)
    rate.record(10_000, 0)
    assert rate.throttle_ms(100, 10_999) > 0
    assert rate.throttle_ms(100, 11_000) == 0


def test_samples_follow_each_other_and_come_round() -> None:
    """A steady flow has its own rate, however long it lasts."""
    rate = WindowedRate(WINDOW)
    for second in range(40):
        rate.record(100, second * 1000)
        assert rate.throttle_ms(110, second * 1000) == 0, second
    assert rate.throttle_ms(90, 39_000) > 0


def test_what_is_taken_back() -> None:
    """A fetch that was not answered has not been."""
    rate = WindowedRate(WINDOW)
    rate.record(5000, 0)
    rate.record(-5000, 0)
    assert rate.throttle_ms(1, 0) == 0


def test_tokens() -> None:
    """They are full at first, may be owed, and come back with time."""
    bucket = TokenBucket(WINDOW)
    assert bucket.throttle_ms(2, 0) == 0
    bucket.take(22, 2, 0)
    assert bucket.throttle_ms(2, 0) == 0
    bucket.take(3, 2, 0)
    assert bucket.throttle_ms(2, 0) == 1500
    assert bucket.throttle_ms(2, 1000) == 500
    assert bucket.throttle_ms(2, 1500) == 0
    bucket.take(22, 2, 100_000)  # no more than full
    bucket.take(1, 2, 100_000)
    assert bucket.throttle_ms(2, 100_000) == 500
