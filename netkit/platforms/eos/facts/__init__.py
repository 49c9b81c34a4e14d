"""Facts of EOS over eAPI: commands with pinned revisions, and pure parsers."""
