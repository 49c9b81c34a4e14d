"""What EOS shows, in the shapes its JSON has."""
