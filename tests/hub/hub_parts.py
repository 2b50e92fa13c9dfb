"""What the local Hub is made of: repositories with their commits, who may read them, requests and answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class File:
    content: bytes
    large: bool

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    def listed(self, path: str) -> dict[str, Any]:
        size = len(self.content)
        blob = hashlib.sha1(b"blob %d\0" % size + self.content).hexdigest()
        large = {"lfs": {"oid": self.sha256, "size": size, "pointerSize": 134}} if self.large else {}
        return {"type": "file", "path": path, "oid": blob, "size": size, **large}


Tree = dict[str, File]


@dataclass
class Repository:
    """`heads` has every commit that a branch ever stood at, in order: nobody can have seen another state.

    `members` read it while it is private, and write to it.
    """

    kind: str
    private: bool
    members: set[str] = field(default_factory=set)
    commits: dict[str, Tree] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    heads: list[str] = field(default_factory=list)

    def add(self, branch: str, tree: Tree) -> str:
        told = json.dumps([len(self.heads), branch, sorted((path, file.sha256) for path, file in tree.items())])
        commit = hashlib.sha1(told.encode()).hexdigest()
        self.commits[commit] = tree
        self.branches[branch] = commit
        self.heads.append(commit)
        return commit

    def tree(self, branch: str = "main") -> Tree:
        return self.commits[self.branches[branch]]


@dataclass(frozen=True)
class Answer:
    """`body` is JSON unless it is bytes. `cut`: the connection ends in the middle of the request, or where its answer should be."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False


@dataclass(frozen=True)
class Request:
    number: int
    method: str
    path: str
    query: dict[str, list[str]]
    token: str | None

    @property
    def upload(self) -> bool:
        return self.method == "PUT"

    @property
    def commit(self) -> bool:
        return self.method == "POST" and "/commit/" in self.path


Fault = Callable[[Request], Answer | None]


def refused(status: int, message: str, code: str = "", **headers: str) -> Answer:
    named = {"X-Error-Code": code} if code else {}
    return Answer(status, {"error": message}, {"X-Error-Message": message, **named, **headers})


class Refusal(Exception):
    def __init__(self, answer: Answer) -> None:
        self.answer = answer


def times(n: int, wanted: Callable[[Request], bool], answer: Answer) -> Fault:
    """The first `n` of some requests are answered so."""
    left = [n]

    def fault(request: Request) -> Answer | None:
        if not wanted(request) or left[0] == 0:
            return None
        left[0] -= 1
        return answer

    return fault


def is_commit(request: Request) -> bool:
    return request.commit
