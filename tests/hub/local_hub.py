"""A Hub on this machine: repositories, commits, large files, private and gated access; and the faults that a real one has.

It speaks as much of the Hub's HTTP interface as huggingface_hub and datasets use to write and read repositories.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qs

from card_rules import faults_of
from hub_parts import Answer, Fault, File, Refusal, Repository, Request, Tree, refused

USER, TOKEN = "tester", "hf_localLOCALlocalLOCALlocalLOCAL00"
OTHER, OTHER_TOKEN = "colleague", "hf_otherOTHERotherOTHERotherOTHER00"
LARGE = (".parquet", ".safetensors")


def _oid(file: File) -> str:
    return file.sha256 if file.large else str(file.listed("")["oid"])


@dataclass
class LocalHub:
    """The state. `fault` may answer in the place of the server; `after` is what becomes of an answer (a lost one)."""

    url: str = ""
    repositories: dict[tuple[str, str], Repository] = field(default_factory=dict)
    large: dict[str, bytes] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=lambda: {TOKEN: USER, OTHER_TOKEN: OTHER})
    requests: list[Request] = field(default_factory=list)
    uploads: list[str] = field(default_factory=list)
    fault: Fault | None = None
    after: Fault | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)

    def repository(self, name: str, kind: str = "dataset") -> Repository:
        return self.repositories[kind, name]

    # --- access

    def find(self, request: Request, kind: str, name: str, revision: str = "main") -> tuple[Repository, str, Tree]:
        repo = self.repositories.get((kind, name))
        if request.token is not None and request.token not in self.tokens:
            # What the server says quotes the token, as a careless proxy may.
            told = refused(401, "Invalid credentials in Authorization header")
            raise Refusal(replace(told, body={"error": f"not known: Bearer {request.token}"}))
        if repo is None or (repo.private and self.user(request) not in repo.members):
            raise Refusal(refused(401 if request.token is None else 404, "Repository not found", "RepoNotFound"))
        commit = repo.branches.get(revision, revision)
        if commit not in repo.commits:
            raise Refusal(refused(404, f"Invalid rev id: {revision}", "RevisionNotFound"))
        return repo, commit, repo.commits[commit]

    def user(self, request: Request) -> str | None:
        return self.tokens.get(request.token or "")

    def writable(self, request: Request, repo: Repository) -> None:
        if request.token not in self.tokens:
            raise Refusal(refused(401, "Invalid username or password."))
        if self.user(request) not in repo.members:
            raise Refusal(refused(403, "Forbidden: pass `create_pr=1` as a query parameter to create a Pull Request"))

    # --- what can be asked

    def whoami(self, request: Request, body: bytes) -> Answer:
        user = self.user(request)
        return Answer(body={"type": "user", "name": user, "orgs": []}) if user else refused(401, "Unauthorized")

    def validate(self, request: Request, body: bytes) -> Answer:
        told = json.loads(body)
        faults = faults_of(told["content"], told["repoType"])
        return Answer(400 if faults else 200, {"errors": [{"message": fault} for fault in faults], "warnings": []})

    def create(self, request: Request, body: bytes) -> Answer:
        told = json.loads(body)
        user = self.user(request)
        namespace = told.get("organization") or user
        kind, name = told.get("type") or "model", f"{namespace}/{told['name']}"
        url = {"url": f"{self.url}/{'datasets/' if kind == 'dataset' else ''}{name}"}
        if user is None:
            return refused(401, "Invalid username or password.")
        if repo := self.repositories.get((kind, name)):
            self.writable(request, repo)
            told_again = refused(409, f"You already created this {kind} repo")
            return replace(told_again, body={**told_again.body, **url})
        if namespace != user:
            return refused(403, f'You don\'t have the rights to create a {kind} under the namespace "{namespace}".')
        hidden = told.get("private") or told.get("visibility") == "private"
        repo = self.repositories[kind, name] = Repository(kind, bool(hidden), {user})
        repo.add("main", {".gitattributes": File(b"*.parquet filter=lfs\n", False)})
        return Answer(body=url)

    def info(self, request: Request, body: bytes, kind: str, name: str, revision: str | None) -> Answer:
        repo, commit, tree = self.find(request, kind, name, revision or "main")
        siblings = [{"rfilename": path} for path in sorted(tree)]
        told = {"id": name, "sha": commit, "private": repo.private, "gated": False, "tags": []}
        return Answer(body={**told, "siblings": siblings, "downloads": 0, "likes": 0})

    def branch(self, request: Request, body: bytes, kind: str, name: str, branch: str) -> Answer:
        repo, commit, _ = self.find(request, kind, name)
        self.writable(request, repo)
        if branch in repo.branches:
            return refused(409, "Reference already exists")
        repo.branches[branch] = commit
        return Answer(body={})

    def listing(self, request: Request, body: bytes, kind: str, name: str, revision: str, inside: str | None) -> Answer:
        _, _, tree = self.find(request, kind, name, revision)
        start = f"{(inside or '').strip('/')}/".lstrip("/")
        found = {path: file for path, file in tree.items() if path.startswith(start)}
        folders = {path[: i.start()] for path in found for i in re.finditer("/", path) if i.start() > len(start)}
        if request.query.get("recursive", ["false"])[0].lower() != "true":
            found = {path: file for path, file in found.items() if "/" not in path[len(start) :]}
            folders = {path for path in folders if "/" not in path[len(start) :]}
        if start and not found and not folders:
            return refused(404, f"{inside} does not exist", "EntryNotFound")
        listed = [{"type": "directory", "path": path, "oid": "0" * 40, "size": 0} for path in sorted(folders)]
        return Answer(body=listed + [file.listed(path) for path, file in sorted(found.items())])

    def paths(self, request: Request, body: bytes, kind: str, name: str, revision: str) -> Answer:
        _, _, tree = self.find(request, kind, name, revision)
        form = json.loads(body) if body.startswith(b"{") else parse_qs(body.decode())
        asked = [path.strip("/") for path in form.get("paths", [])]
        files = [tree[path].listed(path) for path in asked if path in tree]
        folders = [path for path in asked if path not in tree and any(one.startswith(f"{path}/") for one in tree)]
        return Answer(body=files + [{"type": "directory", "path": path, "oid": "0" * 40, "size": 0} for path in folders])

    def preupload(self, request: Request, body: bytes, kind: str, name: str, revision: str) -> Answer:
        _, _, tree = self.find(request, kind, name, revision)
        files = [
            {
                "path": one["path"], "uploadMode": "lfs" if one["path"].endswith(LARGE) else "regular",
                "shouldIgnore": False,
                "oid": _oid(tree[one["path"]]) if one["path"] in tree else None,
            }
            for one in json.loads(body)["files"]
        ]  # fmt: skip
        return Answer(body={"files": files})

    def batch(self, request: Request, body: bytes, name: str) -> Answer:
        self.writable(request, self.repositories["dataset" if request.path.startswith("/datasets/") else "model", name])
        objects = json.loads(body)["objects"]
        for one in objects:
            if one["oid"] not in self.large:
                one["actions"] = {"upload": {"href": f"{self.url}/_large/{one['oid']}?signed=S3CR3T"}}
        return Answer(body={"transfer": "basic", "objects": objects})

    def upload(self, request: Request, body: bytes, sha256: str) -> Answer:
        if hashlib.sha256(body).hexdigest() != sha256:
            return refused(400, "the content has another hash")
        self.large[sha256] = body
        self.uploads.append(sha256)
        return Answer(body={})

    def commit(self, request: Request, body: bytes, kind: str, name: str, branch: str) -> Answer:
        repo, head, tree = self.find(request, kind, name, branch)
        self.writable(request, repo)
        if branch not in repo.branches:
            return refused(400, f"Invalid reference for a branch: {branch}")
        lines = [json.loads(line) for line in body.splitlines()]
        new = dict(tree)
        for line in lines:
            value = line["value"]
            if line["key"] == "header" and value.get("parentCommit") not in (None, head):
                return refused(412, "A commit has happened since. Please refresh and try again.")
            if line["key"] == "file":
                new[value["path"]] = File(base64.b64decode(value["content"]), False)
            elif line["key"] == "lfsFile":
                if value["oid"] not in self.large:
                    return refused(400, f"the large file {value['path']} was never uploaded")
                new[value["path"]] = File(self.large[value["oid"]], True)
            elif line["key"] == "deletedFile":
                del new[value["path"]]
        commit = repo.add(branch, new)
        return Answer(body={"success": True, "commitOid": commit, "commitUrl": f"{self.url}/{name}/commit/{commit}"})

    def resolve(self, request: Request, body: bytes, prefix: str | None, name: str, revision: str, path: str) -> Answer:
        _, commit, tree = self.find(request, "dataset" if prefix else "model", name, revision)
        if path not in tree:
            return refused(404, "Entry not found", "EntryNotFound", **{"X-Repo-Commit": commit})
        file = tree[path]
        etag = file.sha256 if file.large else file.listed(path)["oid"]
        return Answer(body=file.content, headers={"ETag": f'"{etag}"', "X-Repo-Commit": commit, "Accept-Ranges": "bytes"})


KIND, NAME = "(model|dataset)s", "([^/]+/[^/]+?)"
ROUTES: tuple[tuple[str, str, Callable[..., Answer]], ...] = (
    ("GET", "/api/whoami-v2", LocalHub.whoami),
    ("POST", "/api/validate-yaml", LocalHub.validate),
    ("POST", "/api/repos/create", LocalHub.create),
    ("POST", f"/api/{KIND}/{NAME}/preupload/(.+)", LocalHub.preupload),
    ("POST", f"/api/{KIND}/{NAME}/commit/(.+)", LocalHub.commit),
    ("POST", f"/api/{KIND}/{NAME}/branch/(.+)", LocalHub.branch),
    ("POST", f"/api/{KIND}/{NAME}/paths-info/(.+)", LocalHub.paths),
    ("GET", f"/api/{KIND}/{NAME}/tree/([^/]+)(/.*)?", LocalHub.listing),
    ("GET", f"/api/{KIND}/{NAME}(?:/revision/(.+))?", LocalHub.info),
    ("POST", r"/(?:datasets/)?([^/]+/[^/]+)\.git/info/lfs/objects/batch", LocalHub.batch),
    ("PUT", "/_large/([0-9a-f]{64})", LocalHub.upload),
    ("GET HEAD", f"/(datasets/)?{NAME}/resolve/([^/]+)/(.+)", LocalHub.resolve),
)
