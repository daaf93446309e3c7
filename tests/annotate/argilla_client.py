"""Run by the Python of an environment with Argilla's own SDK: our export through it, answered, and out as it writes it.

    python argilla_client.py FOLDER SAID.json OUT

FOLDER is what `annotate export --to argilla` wrote; SAID is {user: {unit: [question, value, status]}}. OUT gets
`flat.json` (`to_list(flatten=True)`) and `nested.json` (`to_json`). The SDK asks a server who it is, so one of two lines answers.
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ME = {"id": "11111111-1111-4111-8111-111111111111", "username": "lead", "role": "owner", "first_name": "lead",
      "inserted_at": "2026-01-01T00:00:00", "updated_at": "2026-01-01T00:00:00"}  # fmt: skip


class Me(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps(ME).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


def main(folder: Path, said: dict[str, dict[str, list[str]]], out: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Me)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ |= {"ARGILLA_API_URL": f"http://127.0.0.1:{server.server_port}", "ARGILLA_API_KEY": "none"}
    import argilla as rg
    from argilla.records._io import GenericIO, JsonIO

    settings = rg.Settings.from_json(folder / "settings.json")
    settings.validate()
    lines = (folder / "records.jsonl").read_text("utf-8").splitlines()
    records = [rg.Record.from_dict(json.loads(line)) for line in lines]
    for record in records:
        for user, answers in said.items():
            if str(record.id) in answers:
                question, value, status = answers[str(record.id)]
                assert settings.questions[question] is not None
                record.responses.add(rg.Response(question, value, user_id=user, status=status))
    flat = GenericIO.to_list(records, flatten=True)
    (out / "flat.json").write_text(json.dumps(flat), "utf-8")
    JsonIO.to_json(records, out / "nested.json")
    print(json.dumps([q.name for q in settings.questions]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text("utf-8")), Path(sys.argv[3]))
