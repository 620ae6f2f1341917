"""What a real broker keeps in tables of hashes comes in no order: by what it is put in one here."""

from __future__ import annotations

#: message and repeated field -> fields that tell its items apart (none: the items themselves)
SHUFFLED: dict[tuple[str, str], tuple[str, ...]] = {
    ("ApiVersionsResponse", "FinalizedFeatures"): ("Name",),
    ("CreateTopicsResponse", "Topics"): ("Name",),
    ("CreatePartitionsResponse", "Results"): ("Name",),
    ("DeleteTopicsResponse", "Responses"): ("Name", "TopicId"),
    ("ProduceResponse", "Responses"): ("Name", "TopicId"),
    ("ListOffsetsResponse", "Topics"): ("Name",),
    ("ListOffsetsResponse", "Partitions"): ("PartitionIndex",),
    ("ProduceResponse", "PartitionResponses"): ("Index",),
    ("MetadataResponse", "Topics"): ("Name", "TopicId"),
}
#: up to how many items the order is told all the same: small sets of Scala keep it
ORDERED_UP_TO = {("MetadataResponse", "Topics"): 4}
