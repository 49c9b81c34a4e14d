"""The Python API, and what the command line is built on: a fabric's folder, and every action on it."""
