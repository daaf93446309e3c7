-- What the model put on no label, where the server held the answer to the labels (0 to 1).
ALTER TABLE judgements ADD COLUMN outside_mass REAL;
