"""`make install` and `make uninstall`, the container recipe and the devcontainer feature."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FEATURE = ROOT / "examples" / "devcontainer-feature" / "src" / "termsprawlctl"


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_install_puts_the_file_its_page_and_completions_and_uninstall_removes_them(ctl, tmp_path, hermetic_env):
    assert os.path.isfile(ROOT / "dist" / "termsprawlctl"), ctl
    prefix = tmp_path / "a place"

    def make(target: str) -> None:
        subprocess.run(["make", "-s", target, f"PREFIX={prefix}"], cwd=ROOT, env=hermetic_env, check=True)

    make("install")
    assert files_below(prefix) == {
        "bin/termsprawlctl",
        "share/man/man1/termsprawlctl.1",
        "share/bash-completion/completions/termsprawlctl",
        "share/zsh/site-functions/_termsprawlctl",
        "share/fish/vendor_completions.d/termsprawlctl.fish",
    }
    installed = prefix / "bin" / "termsprawlctl"
    assert subprocess.run([installed, "--version"], env=hermetic_env, check=True, capture_output=True).stdout
    assert all((prefix / name).stat().st_mode & 0o444 == 0o444 for name in files_below(prefix))
    make("uninstall")
    assert files_below(prefix) == set()


def test_the_feature_installs_the_file_beside_it_and_checks_it(ctl, tmp_path, hermetic_env):
    feature = json.loads((FEATURE / "devcontainer-feature.json").read_text())
    assert feature["id"] == FEATURE.name
    folder = tmp_path / "feature"
    shutil.copytree(FEATURE, folder)
    shutil.copy2(ctl, folder / "termsprawlctl")
    prefix = tmp_path / "usr"
    digest = hashlib.sha256(Path(ctl).read_bytes()).hexdigest()
    environment = {**hermetic_env, "PREFIX": str(prefix)}

    def install(**options: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            ["sh", folder / "install.sh"], env={**environment, **options}, capture_output=True, check=False, text=True
        )

    wrong = install(SHA256="0" * 64)
    assert (wrong.returncode != 0, prefix.exists()) == (True, False)
    done = install(SHA256=digest)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("termsprawlctl ")
    assert os.access(prefix / "bin" / "termsprawlctl", os.X_OK)
    assert "sha256" in install(URL="http://127.0.0.1:1/file").stderr


def test_the_container_recipe_copies_what_is_built_and_runs_a_command_that_is_understood():
    from termsprawlctl.cli import parser

    text = (ROOT / "examples" / "container" / "Containerfile").read_text()
    assert re.search(r"^COPY dist/termsprawlctl /usr/local/bin/termsprawlctl$", text, re.MULTILINE)
    (words,) = [json.loads(line[4:]) for line in text.splitlines() if line.startswith("CMD ")]
    parser.command_parser(words[1]).parse_args(words[2:])
    assert re.search(r"^USER (?!root)", text, re.MULTILINE)
