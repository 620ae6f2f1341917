"""Whether the files of a RocketMQ store tell one story, and where not."""
