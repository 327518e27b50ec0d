"""An experiment as one TOML file: read, checked, completed, explained, written."""
