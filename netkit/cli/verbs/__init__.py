"""What the command line offers: each verb with its arguments and options, by when they are used."""
