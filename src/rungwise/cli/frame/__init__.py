"""The frame of all commands: process, parser, terminal, models."""
