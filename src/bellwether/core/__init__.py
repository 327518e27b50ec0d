"""The heart: vectors, the local loop, participants, the round."""
