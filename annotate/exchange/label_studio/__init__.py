"""Label Studio: exchange a batch's units, questions and labels with it, as files or through its server.

config   the labelling configuration of a task            tasks        units and predictions as tasks
sdk      the vendor's package, its check, its errors      annotations  annotations as responses
server   the calls to a server                            link         the stored projects of a batch
push, pull   send a batch, and fetch its labels
"""
