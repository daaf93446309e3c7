"""Provider batches: a run's requests are written to files and uploaded once, and their results are read into
the same run.

write.write_job(store, plan, provider) write pending units as JSONL files, which reserve them
post.submit(store, job, service) post each file, after storing that it will be posted follow.look(...) ·
follow.fetch(...) get the state of the batches; download their results read.read_results(store, job, paths)
store the results as judgements of the run, each only once whole.run_batches(store, plan, provider) all of
these steps, repeated until no unit is pending
"""
