"""What a verb says and how it is spoken to: text, progress, live screens, questions, Ctrl-C."""
