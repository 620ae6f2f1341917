"""Either protocol on either layout: brokers of the one over stores of the other."""
