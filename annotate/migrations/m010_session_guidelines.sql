-- The guidelines that a session showed are part of the log, so they never change.
CREATE TRIGGER sessions_keep_guidelines BEFORE UPDATE OF guidelines ON sessions WHEN NEW.guidelines IS NOT OLD.guidelines
    BEGIN SELECT RAISE(ABORT, 'the guidelines that a session showed cannot change'); END
