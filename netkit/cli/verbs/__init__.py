"""The arguments and options of each verb."""
