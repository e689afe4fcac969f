"""Time in words: what a query says about when, read by rules."""

from ekphory.temporal.parse import read_time
from ekphory.temporal.reference import Interval, Sessions, TimeReading, TimeReference

__all__ = ["Interval", "Sessions", "TimeReading", "TimeReference", "read_time"]
