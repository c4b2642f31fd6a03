"""A tournament runner for bot competitions at three card games."""

__version__ = "0.1.0"
