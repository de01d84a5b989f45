"""adb: its client, files and commands that survive a cut link, what a device says of itself."""
