"""What EOS tells of itself over eAPI: commands with pinned revisions, and pure parsers."""
