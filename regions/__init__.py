"""Where, when, at what price, and what fits.

Region files, tariffs, offers, cost arithmetic and planning. Pure values in, values out: nothing here knows Prefect,
an object store, or any clock but the one it is given (it reads only its own YAML folder).
"""
