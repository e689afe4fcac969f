"""Rows as the training files have them, small enough to read."""

PERSONA_ROW = {
    "id": "1",
    "personas": [["I work in a factory."], ["I have two dogs named Rex and Max."]],
    "turns": [
        {"speaker": "User 1", "text": "Hi! I am [user 1]."},
        {"speaker": "User 2", "text": "What do you do for a living?"},
        {"speaker": "User 1", "text": "I work in a car factory."},
        {"speaker": "User 2", "text": "I have two dogs, they keep me busy."},
    ],
}
SGD_ROW = {
    "id": "1",
    "services": ["Restaurants_1"],
    "turns": [
        {
            "speaker": "user",
            "text": "I am hungry.",
            "acts": [["INFORM_INTENT", "intent", ["Find"]]],
        },
        {"speaker": "system", "text": "Which city do you like?", "acts": [["REQUEST", "city", []]]},
        {"speaker": "user", "text": "In Oslo.", "acts": [["INFORM", "city", ["Oslo"]]]},
        {
            "speaker": "system",
            "text": "The Ram is nice.",
            "acts": [["OFFER", "restaurant_name", ["The Ram"]]],
        },
    ],
}
