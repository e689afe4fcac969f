"""Documents: files of text, Markdown, PDF, Word and HTML, read into passages with their place.

A reader turns a file into blocks, `passages` gathers the blocks of a section into passages of about
200 tokens, and `explain_exclusion` says which of them answer no question. Nothing here knows the
store.
"""
