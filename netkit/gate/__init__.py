"""Stage: health gates of a deploy that read devices and compare them with how they were before."""
