"""The database schema for people's labels. `judge.migrations` applies it as the set `annotate`.

events        people's actions. Append-only: triggers reject changes, and new rows for a closed batch
assignments   each annotator's units in order, with the state that is computed from the unit's events
batches, batch_units, sessions
batch_judges  the runs that a batch tests, chosen when it is drawn; a trigger of `runs` adds the first run if there was none
batch_labels  a view of the labels: one row per batch, annotator, unit and field, with layer, value and seconds
label_imports labels made elsewhere: one row per import that added something
label_studio_projects, _tasks, _annotations   where a batch was pushed, and what was read back;
              `person` is empty if all annotators share one project
event_sources for an event from another program: that program's record. Retracting the record retracts the event
quarantine    incoming labels that were not accepted, with the reason. No result uses them
exposures     what a person was shown of a unit, in any batch, pack, push, import or page. Append-only
batch_changes a lead's changes to a running batch. Append-only
handed_over   assignments that were taken from a person. The person's earlier pack can still be merged
stopped       people whose labels in a batch no longer count, with the reason
"""
