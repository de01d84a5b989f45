"""What ``import evaltools`` gives: each name in a module by its subject, imported when it is first used."""
