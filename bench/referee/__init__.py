"""The referee: see bench/README.md."""
