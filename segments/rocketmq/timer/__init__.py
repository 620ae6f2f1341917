"""Timer messages of RocketMQ 5.x: the time wheel and its log, and what is due when."""
