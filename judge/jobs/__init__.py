"""Provider batches: the requests of a run as files, posted once, and their results read back into the same run.

write.write_job(store, plan, provider)     what is pending, as JSONL files that keep their units from others
post.submit(store, job, service)           each file posted, after it is stored that it will be
follow.look(...) · follow.fetch(...)       how the batches stand; their results, as files
read.read_results(store, job, paths)       judgements of the same run, each only once
whole.run_batches(store, plan, provider)   all of it, again until nothing is left
"""
