"""Every decision of where, when, how wide and whom to preempt.

Pure: values in, a plan out. No clock, no file, no store, no Prefect: the caller says what time it is
and what lies where.
"""
