"""What runs every day, with nobody or somebody at the keyboard: schedules, news, backups, server, live view."""
