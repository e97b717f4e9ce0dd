"""What goes out of a finished run: labels in the formats of other tools, and the model."""
