"""One run: a method on a pool, or a learner on a stream."""
