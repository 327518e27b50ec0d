"""`python -m bellwether` is the command `bellwether`."""

from bellwether.cli import main

main()
