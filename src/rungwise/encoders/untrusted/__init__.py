"""Allowed settings of networks and tokenizers in a stranger's files: listed by name and type, each within limits."""
