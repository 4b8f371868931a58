-- What waits for someone is among what every process tells.
CREATE TRIGGER drafts_added AFTER INSERT ON drafts BEGIN UPDATE generation SET n = n + 1; END;
CREATE TRIGGER drafts_decided AFTER UPDATE OF status ON drafts BEGIN UPDATE generation SET n = n + 1; END;
