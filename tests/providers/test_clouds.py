"""Azure, Bedrock and Vertex through the vendors' own clients, against a server on the loopback: where each call goes, how
it is signed, what errors become, and that nothing secret is kept."""

import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from judge.errors import (
    KeyProblem,
    MissingExtra,
    ProviderError,
    RateLimited,
    ServerFault,
    Unreachable,
    UsageError,
)
from judge.providers import vendor
from judge.providers.base import Provider, Settings, get
from tests.loopback.anthropic_server import AnthropicServer
from tests.loopback.calls import ask, ask_code, running
from tests.loopback.faults import Fault
from tests.loopback.openai_server import OpenAIServer
from tests.loopback.wire import LoopbackServer, Out, header
from tests.runner.helpers import make_study, numbered, plan, run

SECRET, TOKEN = "canary-secret-key-0123", "canary-token-4567"
CLAUDE = "us.anthropic.claude-x-v1:0"


@pytest.fixture(autouse=True)
def clouds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Made-up credentials, and nothing of this machine's own."""
    for name in (
        "AWS_PROFILE",
        "AWS_BEARER_TOKEN_BEDROCK",
        "OPENAI_API_VERSION",
        "CLOUD_ML_REGION",
        "AWS_SESSION_TOKEN",
        "ANTHROPIC_VERTEX_PROJECT_ID",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "GOOGLE_APPLICATION_CREDENTIALS"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("VERTEX_TOKEN", TOKEN)
    yield


class Claude(AnthropicServer):
    """At Bedrock and Vertex the model stands in the address, and the version of the API in the body."""

    def __init__(self, path: str) -> None:
        super().__init__(record=True)
        self.path = path

    def answer(self, body: dict[str, Any], head: str, fault: Fault | None) -> Out:
        assert "model" not in body
        assert body["anthropic_version"]
        return super().answer({"model": "claude", **body}, f"{head}\r\nanthropic-version: x", fault)


def provider_of(cloud: str, server: LoopbackServer, **options: str) -> Provider:
    root = f"http://127.0.0.1:{server.port}"
    made = {
        "azure": ("azure/my-gpt", root, {"api_version": "2024-10-21"}),
        "bedrock-openai": ("bedrock/openai.gpt-oss-20b", f"{root}/v1", {}),
        "bedrock-anthropic": (f"bedrock/{CLAUDE}", root, {}),
        "vertex": (
            "vertex/claude-x@1",
            f"{root}/v1",
            {"region": "europe-west1", "project": "p1", "key": "env:VERTEX_TOKEN"},
        ),
    }
    model, url, required = made[cloud]
    return get(model, Settings(base_url=url, timeout=20.0, options={**required, **options}))


def server_of(cloud: str) -> LoopbackServer:
    if cloud in ("azure", "bedrock-openai"):
        server = OpenAIServer(record=True)
        server.path = "/openai/deployments/my-gpt/chat/completions" if cloud == "azure" else server.path
        return server
    if cloud == "bedrock-anthropic":
        return Claude(f"/model/{CLAUDE}/invoke")
    return Claude("/v1/projects/p1/locations/europe-west1/publishers/anthropic/models/claude-x@1:rawPredict")


CLOUDS = ["azure", "bedrock-openai", "bedrock-anthropic", "vertex"]


@asynccontextmanager
async def opened(cloud: str, **options: str) -> AsyncIterator[tuple[LoopbackServer, Provider]]:
    """A cloud's server, and its provider."""
    async with server_of(cloud) as server, running(provider_of(cloud, server, **options)) as provider:
        yield server, provider


@pytest.mark.parametrize("cloud", CLOUDS)
async def test_a_call_goes_to_the_right_place_with_the_right_proof(cloud: str) -> None:
    async with opened(cloud) as (server, provider):
        server.reset_counts()
        reply = await provider.complete(ask(max_tokens=77))
    assert json.loads(reply.text)["stance"] in ("support", "refute", "neutral")
    assert reply.usage.input_tokens
    (head,), (body,) = server.heads, server.bodies
    target = head.split(" ")[1]
    if cloud == "azure":
        assert target == "/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21"
        assert header(head, "api-key") == SECRET
        assert body["max_completion_tokens"] == 77
    elif cloud == "vertex":
        assert target.replace("%40", "@") == server.path
        assert header(head, "authorization") == f"Bearer {TOKEN}"
        assert body["max_tokens"] == 77
    else:
        assert target == server.path
        service = "bedrock" if cloud == "bedrock-anthropic" else "bedrock-mantle"
        scope = f"AKIDEXAMPLE/{header(head, 'x-amz-date')[:8]}/eu-central-1/{service}/aws4_request"
        assert header(head, "authorization").startswith(f"AWS4-HMAC-SHA256 Credential={scope}")


@pytest.mark.parametrize("cloud", CLOUDS)
async def test_nothing_secret_is_kept(cloud: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    db = make_study(tmp_path / "s.db", numbered(3))
    async with opened(cloud) as (server, provider):
        report = await run(db, provider, plan(f"{cloud}/m"))
        shown = json.dumps(provider.describe()) + repr(vars(provider)) + str(report)
        server.script(Fault("401", message=f"bad {SECRET} {TOKEN}"))
        with pytest.raises(KeyProblem) as caught:
            await provider.complete(ask())
        shown += str(caught.value)
    assert report.ended == {"ok": 3}
    out, err = capfd.readouterr()
    stored = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    for secret in (SECRET, TOKEN):
        assert secret.encode() not in stored
        if secret in (TOKEN if cloud == "vertex" else SECRET):
            assert secret not in shown + out + err


@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault("429", {"retry-after": "3"}), RateLimited),
        ("500", ServerFault),
        ("reset", Unreachable),
        ("cut", Unreachable),
    ],
    ids=["429", "500", "reset", "cut"],
)
async def test_one_call_one_error(cloud: str, fault: Any, kind: type[ProviderError]) -> None:
    """The clients' own retries are off: waiting is the runner's business."""
    async with opened(cloud) as (server, provider):
        server.reset_counts()
        server.script(fault)
        with pytest.raises(kind) as caught:
            await provider.complete(ask())
    assert server.requests == 1
    if isinstance(caught.value, RateLimited):
        assert caught.value.retry_after == 3


@pytest.mark.parametrize("cloud", CLOUDS)
async def test_a_server_that_is_not_there_or_does_not_answer(cloud: str) -> None:
    server = server_of(cloud)
    async with server:
        provider = provider_of(cloud, server)
        slow = provider_of(cloud, server)
        slow.timeout = 0.2  # type: ignore[attr-defined]
        await provider.open()
        server.delay = 30.0
        with pytest.raises(Unreachable) as late:
            await slow.complete(ask())
        await slow.close()
        server.delay = 0.0
    with pytest.raises(Unreachable) as gone:
        await provider.complete(ask())
    await provider.close()
    assert late.value.timed_out
    assert not gone.value.sent


async def test_a_redirect_is_not_followed() -> None:
    class Elsewhere(Claude):
        def answer(self, body: dict[str, Any], head: str, fault: Fault | None) -> Out:
            return Out(b"{}", 307, b"location: /model/other/invoke\r\n")

    async with (
        Elsewhere(f"/model/{CLAUDE}/invoke") as server,
        running(provider_of("bedrock-anthropic", server)) as provider,
    ):
        with pytest.raises(ProviderError, match="redirect"):
            await provider.complete(ask())
    assert server.requests == 1


async def test_azure_takes_a_token_of_entra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_AD_TOKEN", TOKEN)
    async with opened("azure") as (server, _):
        pass
    assert {header(head, "authorization") for head in server.heads} == {f"Bearer {TOKEN}"}
    assert all(SECRET not in head for head in server.heads)


async def test_azure_gives_label_probabilities_without_more_probes_than_openai() -> None:
    async with opened("azure") as (server, provider):
        assert server.requests == 4, "label probabilities, temperature, seed, and none of these"
        assert provider.label_codes
        assert (await provider.complete(ask_code())).tokens


async def test_bedrock_takes_a_bearer_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", TOKEN)
    for cloud in ("bedrock-openai", "bedrock-anthropic"):
        async with opened(cloud) as (server, provider):
            await provider.complete(ask())
        assert {header(head, "authorization") for head in server.heads} == {f"Bearer {TOKEN}"}


async def test_vertex_renews_googles_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service account of ours, whose tokens come from the loopback and are past their time at once."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    class Google(Claude):
        tokens = 0

        def other(self, method: str, path: str, head: str) -> Out:
            self.tokens += 1
            given = {"access_token": f"token-{self.tokens}", "expires_in": 1, "token_type": "Bearer"}
            return Out(json.dumps(given).encode(), headers=b"content-type: application/json\r\n")

    private = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    async with Google(
        "/v1/projects/p2/locations/eu/publishers/anthropic/models/claude-x:rawPredict"
    ) as server:
        root = f"http://127.0.0.1:{server.port}"
        account = {
            "type": "service_account",
            "project_id": "p2",
            "client_email": "judge@p2.example",
            "private_key": private.decode(),
            "private_key_id": "1",
            "token_uri": f"{root}/token",
        }
        (tmp_path / "account.json").write_text(json.dumps(account))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "account.json"))
        provider = get(
            "vertex/claude-x", Settings(base_url=f"{root}/v1", options={"region": "eu", "project": "p2"})
        )
        async with running(provider):
            for _ in range(2):
                await provider.complete(ask())
    first, second = (header(head, "authorization") for head in server.heads)
    assert first.startswith("Bearer token-") and second.startswith("Bearer token-")
    assert first != second


async def test_own_fields_headers_and_query_go_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM", "red")
    for cloud in CLOUDS:
        given = {"body.service": '"x"', "header.X-Team": "env:TEAM", "query.trace": "1"}
        async with opened(cloud, **given) as (server, provider):
            server.reset_counts()
            await provider.complete(ask())
        assert server.bodies[-1]["service"] == "x"
        assert header(server.heads[-1], "x-team") == "red"
        assert "trace=1" in server.heads[-1].split(" ")[1]


async def test_no_credentials_is_said_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AZURE_OPENAI_API_KEY", "VERTEX_TOKEN"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_REGION", "us-west-2")  # the clients keep a session for each region
    for cloud in CLOUDS:
        async with server_of(cloud) as server:
            provider = provider_of(cloud, server)
            with pytest.raises(KeyProblem) as caught:
                await provider.open()
                await provider.complete(ask())
            await provider.close()
        assert server.requests == 0
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        ("azure/d", {}, "AZURE_OPENAI_ENDPOINT"),
        ("bedrock/m", {"region": "here"}, "--option region="),
        ("bedrock/m", {"speaks": "french"}, "anthropic or openai"),
        ("vertex/m", {}, "CLOUD_ML_REGION"),
        ("vertex/m", {"region": "eu"}, "ANTHROPIC_VERTEX_PROJECT_ID"),
        ("vertex/m", {"region": "eu", "project": "p", "speaks": "x"}, "no option 'speaks'"),
    ],
)
def test_what_is_missing_is_named(
    model: str, options: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZURE_OPENAI_ENDPOINT", raising=False)
    with pytest.raises(UsageError) as caught:
        get(model, Settings(options=options))
    assert said in str(caught.value)


def test_where_it_is_asked_is_no_other_judge() -> None:
    def identity(model: str, **options: str) -> Any:
        return get(model, Settings(options=options)).describe()["options"]

    assert (
        identity("bedrock/m", region="us-east-1", profile="x")
        == identity("bedrock/m", region="eu-west-1")
        == {}
    )
    assert identity("vertex/m", region="eu", project="p") == {}
    assert identity(f"bedrock/{CLAUDE}", thinking="2048") == {"thinking": "2048"}


@pytest.mark.parametrize(
    ("cloud", "module"),
    [("bedrock-openai", "botocore"), ("bedrock-anthropic", "boto3"), ("vertex", "google.auth")],
)
async def test_a_missing_extra_is_named(cloud: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """None in sys.modules is what an import of a package that is not there meets."""
    for name in [n for n in sys.modules if n == module or n.startswith(f"{module}.")]:
        monkeypatch.setitem(sys.modules, name, None)
    for name in (module, f"{module}.auth", f"{module}.session"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setenv("AWS_REGION", "ap-south-1")  # the clients keep a session for each region
    extra = "vertex" if cloud == "vertex" else "bedrock"
    async with server_of(cloud) as server:
        with pytest.raises(MissingExtra, match=rf"pip install 'adjudge\[{extra}\]'"):
            provider = provider_of(cloud, server)
            if cloud == "vertex":  # without a token of its own
                provider = get(
                    "vertex/m",
                    Settings(
                        base_url=f"http://127.0.0.1:{server.port}/v1",
                        options={"region": "eu", "project": "p"},
                    ),
                )
            await provider.open()
            await provider.complete(ask())
        await provider.close()
    assert server.requests == 0


def test_credentials_of_a_message_with_a_secret_are_cleaned() -> None:
    error = vendor.credentials(RuntimeError(f"no {SECRET}"), "Bedrock", "bedrock", [SECRET])
    assert isinstance(error, KeyProblem)
    assert SECRET not in str(error)
