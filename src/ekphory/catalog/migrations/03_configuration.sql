CREATE TABLE configuration (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    content TEXT NOT NULL
) STRICT;
