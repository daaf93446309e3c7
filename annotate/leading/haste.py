"""Detect people who label faster than they can read.

The evidence is how long each unit was shown before it was labelled. A label is fast if its unit was shown for
less than `MS_A_WORD` milliseconds per word, counting at most `MOST_WORDS` words.
"""

from typing import NamedTuple

from judge.store import Store

# Adults read 238 words of non-fiction a minute, which is 252 ms a word (Brysbaert 2019, Journal of Memory and
# Language 109, table 2). Nobody reads three times as fast and understands the text (Rayner et al. 2016,
# Psychological Science in the Public Interest 17(1)).
MS_A_WORD = 80
MOST_WORDS = 50
CHARACTERS = 6
"""The assumed number of characters per word, including the space after the word."""
LEAST, SHARE = 5, 0.1
"""A person is named in the report if at least this many labels, and more than this share of their labels, are
fast.
"""

# SQLite takes the other columns from the row with the minimum: the first label that was not undone.
_FIRST = """
    SELECT e.annotator_id, e.shown_ms, a.active_ms, min(e.seq),
           coalesce(json_extract(u.span, '$.end') - json_extract(u.span, '$.start'), length(p.text), length(s.text),
                    length(i.claim), length(i.question), 0)
    FROM events AS e
    JOIN assignments AS a ON a.batch = e.batch AND a.annotator_id = e.annotator_id AND a.position = e.position
    JOIN units AS u ON u.unit_id = a.unit_id
    LEFT JOIN passages AS p ON p.passage_id = u.passage_id
    LEFT JOIN answers AS s ON s.answer_id = u.answer_id
    LEFT JOIN items AS i ON i.item_id = u.item_id
    WHERE e.kind = 'label' AND e.shown_ms IS NOT NULL AND a.role <> 'adjudication' AND (:batch IS NULL OR e.batch = :batch)
      AND NOT EXISTS (SELECT 1 FROM events AS x WHERE x.undoes = e.event_id)
    GROUP BY e.batch, e.annotator_id, e.position
"""


class ReadingPace(NamedTuple):
    """The number of units with a known time (`timed`), and how many of them were labelled faster than they can
    be read (`fast`).
    """

    fast: int
    timed: int

    @property
    def too_fast(self) -> bool:
        """Whether the report must name the person."""
        return self.fast >= LEAST and self.fast > SHARE * self.timed


def reading_ms(characters: int) -> float:
    """Return the minimum time, in milliseconds, for reading a text of the given length."""
    return min(characters / CHARACTERS, MOST_WORDS) * MS_A_WORD


def paces(store: Store, batch: str | None = None) -> dict[str, ReadingPace]:
    """Return the pace of each annotator who has timed labels. Labels from other tools have no time."""
    people: dict[str, ReadingPace] = {}
    # If a study was never opened for annotation, its tables lack the column.
    if not any(column[1] == "shown_ms" for column in store.conn.execute("PRAGMA table_info(events)")):
        return people
    for who, shown, active, _, characters in store.conn.execute(_FIRST, {"batch": batch}):
        fast, timed = people.get(who, ReadingPace(0, 0))
        # The longer of two times counts: somebody may have read the unit on an earlier visit, and the screen counts
        # this visit only.
        people[who] = ReadingPace(fast + (max(shown, active) < reading_ms(characters)), timed + 1)
    return people


def describe_haste(who: str, pace: ReadingPace) -> str:
    """Return a sentence that says how often a person labelled units faster than they could be read."""
    return (
        f"{who} labelled {pace.fast:,} of {pace.timed:,} units faster than they could be read "
        f"(less than {MS_A_WORD} ms per word, for at most {MOST_WORDS} words)"
    )
