"""The version, and those of the libraries that matter; importable from every layer."""

__version__ = "0.1.0"


def versions() -> dict[str, str]:
    """What a run was made with, for summaries and records."""
    import platform  # noqa: PLC0415  (this module is imported by `s2osc --help`)
    from importlib.metadata import version  # noqa: PLC0415

    libraries = ("numpy", "scikit-learn", "torch")
    return {
        "s2osc": __version__,
        "python": platform.python_version(),
        **{library: version(library) for library in libraries},
    }
