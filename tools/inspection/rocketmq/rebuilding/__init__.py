"""Making a RocketMQ store's derived files anew, and saving what can be read of a damaged one."""
