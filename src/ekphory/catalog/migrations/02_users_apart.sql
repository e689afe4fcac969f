ALTER TABLE consolidations ADD COLUMN user TEXT;
DROP INDEX consolidations_by_tag;
CREATE UNIQUE INDEX consolidations_by_tag
    ON consolidations (org, ifnull(project, ''), set_id, category, tag, user IS NULL,
                       ifnull(user, ''));
