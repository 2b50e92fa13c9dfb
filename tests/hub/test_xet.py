"""Large files go through hf_xet, as they do for whoever has not switched it off: what it says when the Hub refuses is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_parts import Answer, Fault, Request, refused, storage_at
from huggingface_hub import constants
from local_hub import TOKEN, LocalHub
from made import NAME

from hfcf.hub.errors import HubError
from hfcf.hub.push import push

pytest.importorskip("hf_xet")


@pytest.fixture
def xet(hub: LocalHub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[LocalHub]:
    """The local Hub, and uploads of hf_xet, which tries again once and at once."""
    from huggingface_hub.utils._xet import abort_xet_session

    settings = {"CLIENT_RETRY_MAX_ATTEMPTS": "1", "CLIENT_RETRY_BASE_DELAY": "10ms", "TELEMETRY_ENABLED": "false"}
    for name, value in {**settings, "CACHE": str(tmp_path / "xet")}.items():
        monkeypatch.setenv(f"HF_XET_{name}", value)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", False)
    monkeypatch.setattr("huggingface_hub.utils.are_progress_bars_disabled", lambda: True)
    abort_xet_session()
    yield hub
    abort_xet_session()


def token_route(request: Request) -> bool:
    return "xet-write-token" in request.path


def storage(status: int) -> Answer:
    return refused(status, "Private repository storage limit reached")


def at_token(answer: Answer) -> Fault:
    return lambda request: answer if token_route(request) else None


REFUSALS: dict[str, tuple[Fault, str]] = {
    "a full quota": (at_token(storage(403)), r"refused the upload \(403\): the storage quota is full.* or the token has no write"),
    "no payment": (at_token(storage(402)), "the storage quota is full"),
    "a stale token": (at_token(storage(401)), "does not accept the token, which may be stale"),
    "the storage refuses": (lambda request: storage(413) if "/_cas/" in request.path else None, "the storage quota is full"),
    "too many requests": (at_token(storage(429)), "allows fewer requests"),
    "the Hub fails": (at_token(storage(500)), r"the Hub fails \(500\)"),
    "no storage in reach": (at_token(storage_at("http://127.0.0.1:9")), r"the connection failed \(.*error sending request"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_hf_xet_could_not_do_is_told_with_its_cure(xet: LocalHub, run_out: Path, waits: list[float], name: str) -> None:
    xet.fault, message = REFUSALS[name]
    with pytest.raises(HubError, match=message) as caught:
        push(run_out, NAME)
    told = str(caught.value)
    assert told.startswith(f"the dataset {NAME}: ")
    assert "run this again" in told
    assert "\n" not in told
    assert "http://" not in told
    assert TOKEN not in told
    assert set(xet.repository(NAME).tree()) == {".gitattributes"}
    assert any(map(token_route, xet.requests)), "hf_xet was at work"
    assert waits == [], "it has waited itself"
