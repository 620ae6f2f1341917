"""
The formats of before record batches: messages of magic 0 (to Kafka 0.9) and 1 (0.10).

A log of that time is one message after another, without batches around them::

    .log      := message*
    message   := offset i64  size i32  crc u32  magic i8  attributes i8      bytes  0..17
                 [magic 1: timestamp i64]                                    bytes 18..25
                 key value
    key,value := length i32 (-1: null) bytes
    wrapper   := a message whose key is null and whose value is a compressed message*

``size`` counts from the CRC on: a message takes ``12 + size`` bytes, at least 26 (magic 0) or 34
(magic 1). The CRC is zlib's CRC-32 of all from the magic on; the offset lies outside of it.
Attributes: bits 0-2 codec (0 none, 1 gzip, 2 snappy, 3 lz4), bit 3 LogAppendTime (magic 1).
There are no headers, no producers, no leader epochs and no control records.

**The offset of a wrapper is that of its last inner message.** Magic 0 keeps absolute offsets
inside, so a broker had to recompress whatever it was sent; magic 1 keeps relative ones, from 0 on,
and the true ones follow from the wrapper's: ``wrapper - last inner + inner``.
Magic 0 has no timestamps. In magic 1 a wrapper has the largest of its messages', and if it says
LogAppendTime its own is everybody's.
The header checksum of magic 0's lz4 frames is taken over too much (KAFKA-3160).

Modules: :mod:`~.message` (one message and its header), :mod:`~.compressed_set` (the codecs),
:mod:`~.message_set` (records into messages and back), :mod:`~.up_conversion` and
:mod:`~.down_conversion` (to magic 2, and from it).

Source: ``LegacyRecord``, ``AbstractLegacyRecordBatch`` (KIP-31, KIP-32).
"""
