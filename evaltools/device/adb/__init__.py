"""The adb client, what it answers, and what a device says of itself."""
