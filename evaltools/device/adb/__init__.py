"""The adb client, its answers, and the facts about a device."""
