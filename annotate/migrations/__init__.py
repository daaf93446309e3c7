"""The schema of the human half: the set `annotate` of the migrations that `judge.migrations` applies.

events        what people did, append-only: triggers refuse changes, and rows for a closed batch
assignments   who labels what, in which order, and how it stands: a fold of that unit's events
batches, batch_units, sessions
batch_labels  view: one row a batch, annotator, unit and field, with layer, value and seconds
label_imports labels made elsewhere: one row an import that brought something new
label_studio_projects, _tasks, _annotations   where a batch was pushed, and what came from there;
              `person` is empty where one project serves all
event_sources which record of another program an event came from, so that it can be retracted with it
quarantine    incoming labels without proof, with the reason; no number reads it
exposures     what a person was shown of a unit, append-only, over all batches, packs, pushes and imports
batch_changes what a lead did to a batch in flight, append-only
handed_over   seats in queues that were taken from somebody, so that a pack made before can still come back
stopped       people whose labels in a batch count no more, with the reason
"""
