-- The view that a key is shown where it asks for everything.
ALTER TABLE keys ADD COLUMN view TEXT;
