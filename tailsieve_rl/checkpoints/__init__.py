"""Small checkpoints that tests and benchmarks make for themselves: targets, and drafters of a given acceptance.

All of them speak the same language (`chain.py`): each token has one successor, which the target picks with a given
certainty, and which a drafter knows after a given share of the tokens. So how often drafts are accepted is a number
that one sets, not one that one finds.
"""
