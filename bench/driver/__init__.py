"""The benchmark driver: see bench/README.md."""
