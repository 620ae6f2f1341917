"""
A log-segment store that keeps its data exactly as Apache Kafka and Apache RocketMQ keep theirs.

Reading order: :mod:`logstore.span`, :mod:`logstore.host`, :mod:`logstore.segment`,
:mod:`logstore.segmented_log`, :mod:`logstore.partition`; then ``segments`` for the bytes on disk,
``compat`` for the protocols, ``tools`` for what people run.
"""

__version__ = "0.1.0"
