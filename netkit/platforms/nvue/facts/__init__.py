"""Facts of a switch that runs NVUE: commands, and pure parsers of their output.

The JSON of many views is not documented; where only the text form is, its words are taken for the keys.
"""
