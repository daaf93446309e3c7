"""Provider batches: upload a run's requests in files, and store the results in the same run.

The functions, in the order in which they are called:

    write.write_job         writes the pending units as JSONL files, and reserves the units
    post.submit             posts each file, after storing that it will be posted
    follow.poll             requests the state of the batches
    follow.fetch            downloads their results
    read.read_results       stores each result once, as a judgement of the run
    whole.run_batches       repeats these steps until no unit is pending
"""
