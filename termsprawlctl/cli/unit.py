"""Service files that run the host at login, as text. Pure."""

from __future__ import annotations

LABEL = "termsprawlctl"


def systemd_unit(argv: list[str], path: str, _log: str) -> str:
    """A systemd user unit: argv is the command, path the PATH that finds python3 and tmux."""
    return f"""\
# Save as ~/.config/systemd/user/{LABEL}.service, then:
#   systemctl --user daemon-reload && systemctl --user enable --now {LABEL}
# To run it without a login: loginctl enable-linger
[Unit]
Description=termsprawlctl host

[Service]
ExecStart={" ".join(map(_systemd_word, argv))}
Environment={_systemd_word(f"PATH={path}", command=False)}
Restart=on-failure
# Terminals keep running when the host stops.
KillMode=process

[Install]
WantedBy=default.target
"""


def launchd_agent(argv: list[str], path: str, log: str) -> str:
    """The same as a launchd agent; what the host prints goes to `log`."""
    words = "\n".join(f"    <string>{_xml(word)}</string>" for word in argv)
    return f"""\
<?xml version="1.0" encoding="UTF-8"?>
<!-- Save as ~/Library/LaunchAgents/{LABEL}.plist, then: launchctl load -w that file -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>{LABEL}</string>
  <key>ProgramArguments</key>
  <array>
{words}
  </array>
  <key>EnvironmentVariables</key>
  <dict>
    <key>PATH</key>
    <string>{_xml(path)}</string>
  </dict>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <!-- Terminals keep running when the host stops. -->
  <key>AbandonProcessGroup</key>
  <true/>
  <key>StandardErrorPath</key>
  <string>{_xml(log)}</string>
</dict>
</plist>
"""


def _systemd_word(word: str, *, command: bool = True) -> str:
    """One word in systemd.syntax(7): quoted, without specifiers and, in a command, without variables."""
    text = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")
    return f'"{text.replace("$", "$$") if command else text}"'


def _xml(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
