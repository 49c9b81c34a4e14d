"""What a switch that runs NVUE tells of itself: which commands to ask, and pure parsers of what they answer.

The JSON of many views is not documented; where only the text form is, its words are taken for the keys.
"""
