"""The demo: a year with Mara, who renovates a flat, and the questions that it answers."""

from ekphory.demo.story import DEMO_NOW, DemoQuestion, demo_questions, demo_records

__all__ = ["DEMO_NOW", "DemoQuestion", "demo_questions", "demo_records"]
