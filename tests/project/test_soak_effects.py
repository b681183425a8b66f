"""The short form of the soak with numbered effects: each exactly once, or a refusal that is true."""

from __future__ import annotations

import soak_effects


def test_each_command_has_its_effect_once_or_is_truly_refused(ctl):
    counts, faults = soak_effects.soak(ctl, soak_effects.SHORT_TERMINALS, soak_effects.SHORT_COMMANDS)
    assert faults == []
    assert sum(counts.values()) == soak_effects.SHORT_COMMANDS
    assert counts["run"] > 0
