-- What hooks have done; `state.py` tells what it means.

CREATE TABLE IF NOT EXISTS sessions (
    host TEXT, session TEXT, captured TEXT NOT NULL DEFAULT '[]',
    recalled TEXT NOT NULL DEFAULT '[]', PRIMARY KEY (host, session)) STRICT;
CREATE TABLE IF NOT EXISTS by_hand (
    org TEXT, project TEXT, session TEXT, captured TEXT NOT NULL,
    PRIMARY KEY (org, project, session)) STRICT;
CREATE TABLE IF NOT EXISTS waiting (
    id INTEGER PRIMARY KEY AUTOINCREMENT, host TEXT NOT NULL, session TEXT NOT NULL,
    org TEXT, project TEXT NOT NULL, folder TEXT NOT NULL, transcript TEXT, messages TEXT,
    UNIQUE (host, session)) STRICT;
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY, at TEXT NOT NULL, host TEXT NOT NULL, event TEXT NOT NULL,
    project TEXT NOT NULL, milliseconds REAL NOT NULL, did TEXT NOT NULL, failure TEXT) STRICT;
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS pauses (start TEXT NOT NULL, until TEXT NOT NULL) STRICT;
