"""Stage: gates of a deploy that read devices and hold what they find against how it was before."""
