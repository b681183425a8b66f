#!/usr/bin/env python3
"""Make a release out of the last commit: `make release`.

1. The working tree is what was committed, and CHANGELOG.md begins with a dated section of
   the version.
2. The commit is built twice, from copies in different places, under a different time zone,
   locale, umask and hash seed. The two files have to be the same bytes.
3. dist/termsprawlctl is one of them, and the black-box tests run on exactly those bytes.
4. Only then dist/RELEASE_NOTES.md and dist/SHA256SUMS are written: where it lies beside the file, the file was tested.

Exit status: 0 released, 1 something of the above does not hold (said in one line).
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = "termsprawlctl"
SUMS = "SHA256SUMS"
NOTES = "RELEASE_NOTES.md"
# What must not show in the bytes. The folder's name is a part of it: it is the place of the build.
SURROUNDINGS = (
    ("one", {"TZ": "UTC", "LC_ALL": "C", "PYTHONHASHSEED": "1"}, 0o022),
    ("another place", {"TZ": "Pacific/Kiritimati", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "2"}, 0o077),
)


class NotReleased(Exception):
    """Why there is no release; the text is for a person."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Build twice, compare, test those bytes, write their checksum.")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="where the release goes (default: dist)")
    parser.add_argument("--partial", action="store_true", help="with bytecode for the Pythons that are there")
    parser.add_argument(
        "tests", nargs="*", default=["-m", "blackbox"], help="what to pass to pytest, after -- (default: -m blackbox)"
    )
    options = parser.parse_args()
    try:
        release(options.dist, options.tests, [] if options.partial else ["--release"])
    except NotReleased as fault:
        print(f"no release: {fault}", file=sys.stderr)
        return 1
    return 0


def release(dist: Path, tests: list[str], options: list[str]) -> None:
    """Everything, in order; raises NotReleased at the first thing that does not hold."""
    sums = dist / SUMS
    sums.unlink(missing_ok=True)
    (dist / NOTES).unlink(missing_ok=True)
    commit = committed()
    version = stated_version((ROOT / NAME / "__init__.py").read_text())
    dated(version, (ROOT / "CHANGELOG.md").read_text())
    with tempfile.TemporaryDirectory() as scratch:
        places = [(Path(scratch, place), environment, umask) for place, environment, umask in SURROUNDINGS]
        with ThreadPoolExecutor() as both:
            builds = list(both.map(built, *zip(*places), [options] * len(places)))
    difference = first_difference(*builds)
    if difference:
        raise NotReleased(f"two builds of the same commit differ in {difference}")
    digest = hashlib.sha256(builds[0]).hexdigest()
    write(dist / NAME, builds[0], 0o755)
    say(f"two builds of {commit[:12]} are the same {len(builds[0]):,} bytes, SHA-256 {digest}")
    environment = {**os.environ, "CTL_FILE": str(dist / NAME), "CTL_SHA256": digest}
    if subprocess.run([sys.executable, "-m", "pytest", *tests], cwd=ROOT, env=environment, check=False).returncode:
        raise NotReleased(f"the black-box tests fail on {dist / NAME}")
    if (dist / NAME).read_bytes() != builds[0]:
        raise NotReleased(f"{dist / NAME} was changed while it was tested")
    write(dist / NOTES, notes(version, (ROOT / "CHANGELOG.md").read_text(), digest).encode(), 0o644)
    write(sums, f"{digest}  {NAME}\n".encode(), 0o644)
    say(f"released {NAME} {version}: {dist / NAME}, {sums}, {dist / NOTES}")
    say(f"built by Python {sys.version.split()[0]}; the same bytes need the same Python, down to the minor version")


def say(text: str) -> None:
    print(text, flush=True)


def git(*arguments: str) -> bytes:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        raise NotReleased(f"git {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def committed() -> str:
    """The id of the commit that the working tree is; raises NotReleased where it is none."""
    changed = git("status", "--porcelain").decode(errors="replace").splitlines()
    if changed:
        raise NotReleased(f"commit first, a release is made of a commit: {', '.join(line[3:] for line in changed[:5])}")
    return git("rev-parse", "HEAD").decode().strip()


def stated_version(source: str) -> str:
    """The package's version, MAJOR.MINOR.PATCH; raises NotReleased."""
    found = re.search(r'^__version__ = "(\d+\.\d+\.\d+)"$', source, re.MULTILINE)
    if not found:
        raise NotReleased(f"{NAME}/__init__.py has no __version__ of the form 1.2.3")
    return found[1]


def notes(version: str, changelog: str, digest: str) -> str:
    """What a release's page says: the version's section of CHANGELOG.md, and how to check the file."""
    section = re.search(rf"^## {re.escape(version)} - .+?\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if not section:
        raise NotReleased(f"CHANGELOG.md has no section {version}")
    return f"{section[1].strip()}\n\n### Checksum\n\n```\n{digest}  {NAME}\n```\n"


def dated(version: str, changelog: str) -> None:
    """The first section is `## VERSION - YYYY-MM-DD`; raises NotReleased."""
    headings = re.findall(r"^## (.+)$", changelog, re.MULTILINE)
    first = headings[0] if headings else "nothing"
    name, _, day = first.partition(" - ")
    try:
        dt.date.fromisoformat(day)
    except ValueError:
        day = ""
    if name != version or not day:
        raise NotReleased(f"CHANGELOG.md begins with {first!r}, not with '## {version} - YYYY-MM-DD'")


def built(place: Path, environment: dict[str, str], umask: int, options: list[str]) -> bytes:
    """The file, from a copy of the commit in that place."""
    place.mkdir()
    with tarfile.open(fileobj=io.BytesIO(git("archive", "--format=tar", "HEAD"))) as archive:
        archive.extractall(place)  # noqa: S202 - our own commit
    target = place / "dist" / NAME
    done = subprocess.run(
        [sys.executable, "build.py", "-o", str(target), *options],
        cwd=place,
        umask=umask,
        env={"PATH": os.environ.get("PATH", os.defpath), **pythons(), **environment},
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise NotReleased(f"build.py fails: {done.stderr.decode(errors='replace').strip()}")
    return target.read_bytes()


def pythons() -> dict[str, str]:
    """The variable that names the Pythons of this checkout to build.py, which runs in a copy of it."""
    ask = "import build, os; print(os.pathsep.join(build.pythons()))"
    done = subprocess.run([sys.executable, "-c", ask], cwd=ROOT, capture_output=True, text=True, check=True)
    return {"BUILD_PYTHONS": done.stdout.strip()}


def first_difference(one: bytes, other: bytes) -> str:
    """What of the archive is not the same, '' where all is."""
    if one == other:
        return ""
    archives = [zipfile.ZipFile(io.BytesIO(data)) for data in (one, other)]
    names = [archive.namelist() for archive in archives]
    if names[0] != names[1]:
        return f"their names: {', '.join(sorted(set(names[0]) ^ set(names[1]))) or 'another order'}"
    for name in names[0]:
        if archives[0].read(name) != archives[1].read(name):
            return name
    return "what surrounds the archive's entries"


def write(target: Path, data: bytes, mode: int) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(scratch, mode)
        os.replace(scratch, target)
    except BaseException:
        os.unlink(scratch)
        raise


if __name__ == "__main__":
    sys.exit(main())
