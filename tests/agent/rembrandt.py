"""A small store with a chain of three hops, a comparison, and much else."""

FACTS = {
    "wedding": "Rembrandt married Saskia van Uylenburgh in 1634.",
    "family": "Saskia's father was Rombertus van Uylenburgh, a mayor of Leeuwarden.",
    "born": "Rombertus van Uylenburgh was born in Bergum, a village in Friesland.",
    "acme": "The CEO of Acme is Leonie Vasquez.",
    "couple": "Leonie Vasquez is married to Piet Hofstra; they sail in Enkhuizen.",
    "job": "Piet Hofstra's company is Blauwdruk Robotics.",
    "anna": "Anna Kowalski was born in 1961 in Gdynia.",
    "boris": "Boris Lindqvist was born in 1974 in Uppsala.",
    "dog": "The dog is called Biscuit and is afraid of the tram.",
    "roof": "The roof of the shed leaks when it rains.",
    "tiles": "Two square metres of tiles were missing in the kitchen.",
    "keys": "The spare keys lie in the blue bowl.",
}
THREE_HOPS = "Where was the father of Rembrandt's wife born?"
SPOUSE = "What is the current company of the spouse of the CEO of Acme?"
COMPARISON = "Who is older, Anna Kowalski or Boris Lindqvist?"
SINGLE = "Where are the spare keys?"


NOW = "2026-11-21T12:00Z"


def records():
    return [{"id": name, "text": text, "at": "2026-11-01T12:00Z"} for name, text in FACTS.items()]
