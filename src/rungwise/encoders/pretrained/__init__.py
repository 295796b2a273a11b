"""Published dual encoders as sides of a joint embedding: open_clip, transformers, sentence-transformers.

A side is built from a half of a published checkpoint (:mod:`~rungwise.encoders.pretrained._halves`), and restored from
a saved model's description of the network, the preprocessing and the tokenizer. One file for each library reads its
folders and builds its networks.
"""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
