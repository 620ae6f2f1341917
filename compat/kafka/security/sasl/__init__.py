"""SASL: how clients say who they are, mechanism by mechanism. Not loaded without it."""
