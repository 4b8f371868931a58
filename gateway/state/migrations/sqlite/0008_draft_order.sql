-- Texts of drafts are long, and their columns stand before those that say which draft it is: what is asked of many drafts at
-- once is answered from an index.
CREATE INDEX drafts_by_time ON drafts (created_ms, id, status, contract);
CREATE INDEX drafts_of_contract ON drafts (contract, created_ms, id, origin, status, base);
