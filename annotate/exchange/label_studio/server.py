"""A client for the few calls that we make to a Label Studio server. Its errors name the next step."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from annotate.exchange.label_studio import sdk
from judge.errors import Rejected, ServerFault
from judge.types import Json

PAGE = 1000
IDS = 200
"""The largest number of task ids in one URL. Proxies reject longer URLs."""
# The SDK retries calls that read. A call that writes is not retried, because a server may have written before
# it failed.
_ONCE = {"max_retries": 0}


class Project(NamedTuple):
    """The attributes of a Label Studio project that we use."""

    id: int
    description: str
    xml: str
    predictions: int


class TaskTimes(NamedTuple):
    """The times at which a task was created and last changed (ISO 8601).

    The server may give the id of a deleted task to a new task, so only id and creation time together identify
    a task.
    """

    created: str
    updated: str


class User(NamedTuple):
    """A user of the server, who may be an annotator."""

    id: int
    email: str
    username: str

    def __str__(self) -> str:
        return self.email or self.username or f"user {self.id}"


class Server:
    """A client of one server with one key. It is a context manager that closes its connections.

    Every method raises ProviderError if a call fails.
    """

    def __init__(self, url: str) -> None:
        self.url = sdk.address(url)
        self._client, self._http = sdk.connect(self.url)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *exc: object) -> None:
        self._http.close()

    def project(self, number: int) -> Project | None:
        """Return a project, or None if it does not exist."""
        try:
            with sdk.explain_errors(self.url):
                return _project(self._client.projects.get(id=number))
        except Rejected as e:
            if e.status == 404:
                return None
            raise

    def find(self, mark: str) -> Project | None:
        """Return the newest project whose description contains `mark`, or None."""
        with sdk.explain_errors(self.url):
            projects = [_project(p) for p in self._client.projects.list(page_size=100)]
        return max((p for p in projects if mark in p.description), key=lambda p: p.id, default=None)

    def create(self, settings: Mapping[str, Any]) -> int:
        """Create a project and return its id."""
        with sdk.explain_errors(self.url):
            return int(self._client.projects.create(**settings, request_options=_ONCE).id)

    def update(self, number: int, settings: Mapping[str, Any]) -> None:
        """Change a project."""
        with sdk.explain_errors(self.url, "the project is gone"):
            self._client.projects.update(id=number, **settings, request_options=_ONCE)

    def add(self, number: int, tasks: Sequence[Mapping[str, Json]]) -> list[int]:
        """Import tasks and return their ids in the same order."""
        with sdk.explain_errors(self.url, "the project was deleted while tasks were sent"):
            reply = self._client.projects.import_tasks(
                id=number, request=list(tasks), return_task_ids=True, request_options=_ONCE
            )
            ids = [int(i) for i in reply.task_ids or []]
        if len(ids) != len(tasks):
            raise ServerFault(
                f"{self.url}: {len(tasks)} tasks were sent, but {len(ids)} ids were returned; run the same command again"
            )
        return ids

    def listing(self, number: int) -> dict[int, TaskTimes]:
        """Return the creation and change times of every task in a project, by task id. This takes about ten
        seconds for 10,000 tasks.
        """
        # An annotation that is added, edited or deleted changes the time of its task.
        with sdk.explain_errors(self.url, "the project was deleted"):
            tasks = self._client.tasks.list(
                project=number, page_size=PAGE, include="id,created_at,updated_at", fields="task_only"
            )
            return {int(t.id): TaskTimes(t.created_at.isoformat(), t.updated_at.isoformat()) for t in tasks}

    def users(self) -> dict[int, User]:
        """Return all users on the server, by id."""
        with sdk.explain_errors(self.url):
            return {
                int(u.id): User(int(u.id), u.email or "", u.username or "") for u in self._client.users.list()
            }

    def tasks(self, number: int, ids: Sequence[int] | None) -> Iterator[dict[str, Any]]:
        """Yield tasks with their data and annotations, in the form of the JSON export. If `ids` is None, yield
        all tasks.
        """
        if ids is not None and not ids:
            return
        for start in range(0, 1 if ids is None else len(ids), IDS):
            chosen = {} if ids is None else {"ids[]": list(ids[start : start + IDS])}
            yield from self._export(number, {"additional_query_parameters": chosen})

    def _export(self, number: int, options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        import ijson

        # The export goes to a file, because the export of a large project would fill the memory.
        with tempfile.TemporaryFile() as file:
            with sdk.explain_errors(self.url, "the project was deleted"):
                # Otherwise the export would leave out tasks without annotations, among them those whose
                # annotations were deleted.
                for part in self._client.projects.exports.download_sync(
                    number, export_type="JSON", download_all_tasks=True, request_options=options
                ):
                    file.write(part)
            file.seek(0)
            try:
                # By default, ijson reads numbers as Decimal.
                for task in ijson.items(file, "item", use_float=True):
                    if not isinstance(task, dict):
                        raise ServerFault(
                            f"{self.url}: the export of project {number} is not a list of tasks"
                        )
                    yield task
            except ijson.JSONError as e:
                raise ServerFault(
                    f"{self.url}: the export of project {number} is truncated; run the same command again"
                ) from e


def _project(project: Any) -> Project:
    return Project(
        int(project.id),
        project.description or "",
        project.label_config or "",
        project.total_predictions_number or 0,
    )
