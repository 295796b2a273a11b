"""Published dual encoders as sides of a joint embedding: open_clip, transformers, sentence-transformers.

A side is built from a half of a published checkpoint (:mod:`~rungwise.encoders.pretrained.halves`) and restored from
what a saved model says of it: a description of the network, the preprocessing, the tokenizer. One file for each library
says how its folders are read and its networks are made.
"""
