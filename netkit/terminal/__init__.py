"""The terminal: text, progress, live screens, questions, Ctrl-C."""
