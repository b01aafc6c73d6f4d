"""Launches a trainer by its contract and finds out what became of it: files, processes and facts.

Nothing here knows Prefect, an object store or a plan. What a trainer sees is in `contract`; how it is started and
stopped in `process`; what it says in `progress` and `level0`, and when it says too little in `silence`; what it saved
in `saves`; what its end means in `outcome`.
"""
