-- A project of NULL in set_types, semantic_sets and their like means the whole organisation.

CREATE TABLE projects (
    org TEXT NOT NULL,
    project TEXT NOT NULL,
    description TEXT NOT NULL,
    config TEXT NOT NULL,
    enabled INTEGER NOT NULL DEFAULT 1,
    long_term INTEGER NOT NULL DEFAULT 1,
    short_term INTEGER NOT NULL DEFAULT 1,
    created_at TEXT NOT NULL,
    PRIMARY KEY (org, project)
) STRICT;

CREATE TABLE access_keys (
    id TEXT PRIMARY KEY,
    digest BLOB NOT NULL,
    name TEXT NOT NULL,
    org TEXT,
    project TEXT,
    rights TEXT NOT NULL,
    created_at TEXT NOT NULL,
    revoked_at TEXT
) STRICT;

CREATE TABLE traces (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    org TEXT NOT NULL,
    project TEXT NOT NULL,
    created_at TEXT NOT NULL,
    content TEXT NOT NULL
) STRICT;

CREATE TABLE shown_ids (
    org TEXT NOT NULL,
    project TEXT NOT NULL,
    shown TEXT NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (org, project, shown)
) STRICT, WITHOUT ROWID;

CREATE TABLE set_types (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    org TEXT NOT NULL,
    project TEXT,
    tags TEXT NOT NULL,
    name TEXT,
    description TEXT
) STRICT;

CREATE TABLE semantic_sets (
    id TEXT NOT NULL,
    org TEXT NOT NULL,
    project TEXT,
    tags TEXT NOT NULL,
    embedder TEXT,
    llm TEXT
) STRICT;
CREATE UNIQUE INDEX semantic_sets_by_name ON semantic_sets (org, ifnull(project, ''), id);

CREATE TABLE categories (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    org TEXT NOT NULL,
    project TEXT,
    set_id TEXT,
    set_type_id INTEGER REFERENCES set_types (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    prompt TEXT NOT NULL,
    description TEXT,
    CHECK ((set_id IS NULL) <> (set_type_id IS NULL))
) STRICT;
CREATE UNIQUE INDEX categories_by_name
    ON categories (org, ifnull(project, ''), ifnull(set_id, ''), ifnull(set_type_id, 0), name);

CREATE TABLE disabled_categories (
    org TEXT NOT NULL,
    project TEXT,
    set_id TEXT NOT NULL,
    name TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX disabled_categories_by_name
    ON disabled_categories (org, ifnull(project, ''), set_id, name);

CREATE TABLE tags (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    category_id INTEGER NOT NULL REFERENCES categories (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    UNIQUE (category_id, name)
) STRICT;
