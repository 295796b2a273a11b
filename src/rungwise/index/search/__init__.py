"""From the hits of a store to the ranking that a person sees."""
