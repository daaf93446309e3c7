"""Find the stored run that a plan resumes. Only settings that change the meaning of an answer identify a run.

These settings are the task, the model (or its name from `--as`), temperature, seed, answer mode, label order
and the provider's own options. Examples, rationale and wording are part of the task's text. Address, token
limit and time-out are stored with each attempt. The answer mode is fixed when the run begins: the run remains the same
even if a server later reports different support for label probabilities.
"""

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from judge.errors import UsageError
from judge.prompts.render import Mode
from judge.providers.base import Masks, PairReader, Provider
from judge.providers.masks import MASKS
from judge.runner.modes import choose_mode, mode_of, uses_codes
from judge.runner.plan import Plan
from judge.runner.requests import Asker
from judge.store import runs
from judge.store.runs import Begun
from judge.store.study import Store
from judge.types import Json

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Settled:
    """The run of a plan: `run_id` is None for a new run. `notes` are remarks for the user."""

    asker: Asker
    options: Mapping[str, Json]
    run_id: str | None
    notes: tuple[str, ...] = ()


def settle(store: Store, plan: Plan, provider: Provider) -> Settled:
    """Return the run that the plan resumes or begins. `provider` must be open.

    Raises UsageError if the server reports a different model name than earlier in the run, or if replicas
    report different names.
    """
    facts = provider.describe()
    wants = plan.sampling
    if not provider.label_codes and (wants.answers == "words" or wants.orders > 1):
        setting = "--answers words" if wants.answers == "words" else f"--label-order {wants.orders}"
        raise UsageError(
            f"{setting} needs label probabilities, which {plan.model} does not return; use --answers json"
        )
    probed = mode_of(plan.task, provider, plan.sampling)
    if not plan.same_model:
        _check_replica_names(facts)
    begun = _find_run(store.conn, plan, provider, probed, facts.get("base_url"))
    notes: list[str] = []
    mode = probed if begun is None else Mode(begun.mode)
    mask = _mask(provider, mode)
    if begun is not None:
        try:
            _check_model_name(store.conn, plan, begun, facts)
            # A different mask changes the probabilities, so a resumed run keeps its mask.
            mask = _mask_of(begun, provider, mask, notes)
        except UsageError:
            # The start-up probes were paid for, although nothing else of the run is sent.
            if plan.opened is not None:
                runs.add_probes(store, begun.run_id, plan.opened.as_json(plan.price(facts) is not None))
            raise
        if mode is not probed:
            notes.append(
                f"run {begun.run_id} began with --answers {mode} and is resumed in that mode, although the model now "
                f"{'returns' if provider.label_codes else 'does not return'} label probabilities"
            )
    if isinstance(provider, Masks):
        provider.set_mask(mask)
    asker = Asker(plan.task, plan.model, provider, plan.sampling, mode, mask)
    options = {**asker.options, **plan.extra, **plan.typed}
    if plan.asked_as is not None:
        options["asked_as"] = plan.asked_as
    return Settled(asker, options, None if begun is None else begun.run_id, tuple(notes))


def matching_runs(store: Store, plan: Plan, provider: Provider, url: Json = None) -> list[str]:
    """Return the ids of the runs that the plan could resume.

    If `url` is given, only runs that used this address are returned, unless the plan has `same_model`.
    """
    run_ids = runs.find_begun(store.conn, plan.task.name, plan.model, _identities(plan, provider))
    there = url is None or plan.same_model
    return [run.run_id for run in run_ids if there or _is_among(url, run.addresses)]


def _identities(plan: Plan, provider: Provider) -> list[str]:
    """Return the possible identities of the plan's run: one for each answer mode and mask that the plan allows."""
    chosen = plan.sampling.answers
    modes = (
        # Only the server can say whether it gives label probabilities, so a run in either mode may fit.
        [Mode.CODES, choose_mode(plan.task, False, chosen)]
        if chosen == "auto" and uses_codes(plan.task)
        else [choose_mode(plan.task, False, chosen)]
    )
    if isinstance(provider, PairReader):
        modes = [Mode.PAIR]
    if plan.sampling.orders > 1:
        # Several orders are averaged over label probabilities, which JSON answers do not have.
        modes = [mode for mode in modes if mode is not Mode.JSON]
    identities = []
    for mode in modes:
        options = {**Asker(plan.task, plan.model, provider, plan.sampling, mode).options, **plan.extra}
        masks = [{"mask": mask} if mask else {} for mask in _masks(provider, mode)]
        identities += [runs.identity({**options, **mask}) for mask in masks]
    return identities


def _mask(provider: Provider, mode: Mode) -> str | None:
    """Return the mask (the method of restricting answers to the labels) for this mode."""
    if not isinstance(provider, Masks) or mode not in (Mode.CODES, Mode.WORDS):
        return None
    # A bias restricts single tokens only, and a word may take several.
    return None if mode is Mode.WORDS and provider.mask == "logit_bias" else provider.mask


def _masks(provider: Provider, mode: Mode) -> Sequence[str | None]:
    """Return the possible masks (see `_mask`) of a run that this plan could resume."""
    if not isinstance(provider, Masks) or mode not in (Mode.CODES, Mode.WORDS):
        return (None,)
    if provider.chosen_mask == "auto":
        return (None, *MASKS)
    return (None if provider.chosen_mask == "none" else provider.chosen_mask,)


def _mask_of(run: Begun, provider: Provider, now: str | None, notes: list[str]) -> str | None:
    """Return the mask with which a run began. Raises UsageError if the server does not support it."""
    began = run.options.get("mask")
    if began is None and now is not None:
        notes.append(
            f"run {run.run_id} began without a mask and is resumed without one, although the server now "
            f"supports mask={now}"
        )
    if began is not None and began != now:
        raise UsageError(
            f"run {run.run_id} began with mask={began}, which was not detected on this server: require it with --option "
            f"mask={began}, or start another run with --as NAME"
        )
    return None if began is None else str(began)


def _find_run(
    conn: sqlite3.Connection, plan: Plan, provider: Provider, probed: Mode, url: Json
) -> Begun | None:
    """Return the run that fits the plan best, or None if no run fits.

    Runs with the same value of `--answers` are preferred, then those with the same mode, the same mask and
    the same address.
    """
    run_ids = runs.find_begun(conn, plan.task.name, plan.model, _identities(plan, provider))

    def fit(run: Begun) -> tuple[bool, bool, bool, bool]:
        same_answers = run.options.get("answers") == plan.sampling.answers
        same_mask = run.options.get("mask") == _mask(provider, Mode(run.mode))
        return same_answers, run.mode == probed, same_mask, _is_among(url, run.addresses)

    # Of equally good matches `max` returns the first one, which is the newest run.
    return max(run_ids, key=fit, default=None)


def _check_replica_names(facts: Mapping[str, Json]) -> None:
    """Raise UsageError if replicas report different model names."""
    named = {url: name for url, name in (facts.get("replicas") or {}).items() if name}
    if len(set(named.values())) > 1:
        models_of = ", ".join(f"{url} '{name}'" for url, name in named.items())
        raise UsageError(
            f"--base-url: the servers report different model names ({models_of}); omit the servers with a different "
            "model, or add --same-model"
        )


def _check_model_name(conn: sqlite3.Connection, plan: Plan, run: Begun, facts: Mapping[str, Json]) -> None:
    """Raise UsageError if the server reports a different model name than earlier in the run.

    Its weights may have changed, or a vendor's alias may now name a newer model.
    """
    url, name = facts.get("base_url"), facts.get("reports")
    addresses = run.addresses
    if not url or not addresses or plan.same_model:
        return
    known = runs.read_reported_models(conn, run.run_id) | {n for n in addresses.values() if n}
    # Many servers report no name. At the same address the model is then taken for the same.
    if name in known or (_is_among(url, addresses) and (not name or not known)):
        return
    before = f"reported the model {_join_names(known)}" if known else "reported no model name"
    now = f"now reports '{name}'" if name else "now reports no model name"
    raise UsageError(
        f"run {run.run_id} ({plan.task.name}, {plan.model}) was made at {next(iter(addresses))}, which {before}; {url} {now}. "
        "Add --same-model to resume the run, or --as NAME to start another run"
    )


def _is_among(url: Json, addresses: Collection[str]) -> bool:
    return isinstance(url, str) and _normalise_address(url) in {_normalise_address(a) for a in addresses}


def _normalise_address(url: str) -> tuple[str, str, int | None, str]:
    """Return the parts of an address in a form that can be compared.

    Every name of the local machine becomes `localhost`, and a missing port becomes the default port.
    """
    parts = urlsplit(url)
    # localhost and 127.0.0.1 are the same server, so a run that began at one of them is resumed at the other.
    host = "localhost" if parts.hostname in _LOOPBACK else str(parts.hostname)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, host, port, parts.path.rstrip("/")


def _join_names(names: set[str]) -> str:
    return " or ".join(f"'{n}'" for n in sorted(names)[:3])
