"""What a stranger's files may say of networks and tokenizers: listed by name and type, each within limits."""
