"""`tailsieve calibrate`: the decode profile of a real vLLM engine, measured over its HTTP API.

settings    what to measure, checked before anything starts
started     an engine of our own for the time of a measurement
client      one engine over HTTP: generate, and read its counters
measure     tau(b) from those counters
profile     the file that comes out
command     all of it in order

Imports neither verl nor vLLM: a running engine can be measured from a machine that has neither.
"""
