"""Loops of the bridge that numba makes fast; what runs without it stands where it is used."""
