"""How well degrees agree with people's judgements, and people with each other."""
