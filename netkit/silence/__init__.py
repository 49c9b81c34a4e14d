"""Stage: silences.yaml → what is silenced, and edits of that file. The judge is handed it with the time."""
