"""What a comparison shows, for people: a page, a table in the terminal, and live progress."""
