"""Management access to a node: SSH, HTTPS, and the socket between its commands and the keeper."""
