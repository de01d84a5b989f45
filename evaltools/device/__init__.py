"""Phones and boards over adb: the ``adb`` binary as a subprocess, whose every answer is checked."""
