"""The command `bellwether`: a thin door to the library, one module a group of commands."""

from bellwether.cli.app import app, main

__all__ = ["app", "main"]
