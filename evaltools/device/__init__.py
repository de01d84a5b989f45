"""Phones and boards over adb: the ``adb`` binary as a subprocess, and nothing believed that was not proven."""
