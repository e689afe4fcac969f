CREATE TABLE extraction_jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    org TEXT NOT NULL,
    project TEXT NOT NULL,
    reach TEXT NOT NULL,
    episode TEXT NOT NULL,
    done TEXT NOT NULL DEFAULT '[]',
    attempts INTEGER NOT NULL DEFAULT 0,
    due REAL NOT NULL DEFAULT 0,
    failure TEXT,
    UNIQUE (org, project, episode)
) STRICT;
CREATE INDEX extraction_jobs_by_due
    ON extraction_jobs (org, project, due) WHERE failure IS NULL;

CREATE TABLE consolidations (
    org TEXT NOT NULL,
    project TEXT,
    set_id TEXT NOT NULL,
    category TEXT NOT NULL,
    tag TEXT NOT NULL,
    features INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX consolidations_by_tag
    ON consolidations (org, ifnull(project, ''), set_id, category, tag);
