"""A real llama.cpp server on loopback with the bundled weights: `python -m tests.loopback.llama_server --port N`.

Prints its base URL and serves until it is killed. One slot: it takes one call at a time, as such servers do.
"""

import argparse
import signal

import xllamacpp

from judge.providers.llamacpp import find_bundled_weights


def main() -> None:
    """Serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = str(find_bundled_weights())
    params.n_ctx, params.n_parallel = 1024, 1
    # One thread: llama.cpp's threads wait for each other actively, which other work on the cores spoils.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup, params.verbosity = False, 0
    # The name of this field has changed between versions; loopback is the default of both.
    if hasattr(params, "hostnames"):
        params.hostnames = ["127.0.0.1"]
    else:
        params.hostname = "127.0.0.1"
    params.port = options.port
    server = xllamacpp.Server(params)
    print(f"{server.listening_address}/v1", flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
