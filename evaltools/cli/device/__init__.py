"""``evaltools device``: phones and boards over adb."""
