"""Streams: classes that keep arriving (I-S2OSC)."""
