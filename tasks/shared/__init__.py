"""What the evaluations have in common.

``kind`` is what a task is to all others; ``options`` are those of all tasks, ``request`` is what is asked for.
``evaluation`` has the steps from there to the result: ``measuring`` carries out the pass, ``one_pass`` counts what its
records say, ``run_identity`` says whether a run may go on and merges shards. ``conclusions`` serve limits, and what to
do next. ``image_input`` makes the input of a picture.
"""
