"""Our method, one file per step: teacher, filtering, student, clusters, method."""
