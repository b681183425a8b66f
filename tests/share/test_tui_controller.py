"""The rules of a share, without sockets or tmux: clock and view are the test's own."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from support.tui_endpoint import changed
from support.waiting import Clock

from termsprawlctl.share import wire
from termsprawlctl.share.sharing.controller import (
    FAILED,
    FENCED,
    MAX_RECEIPTS,
    QUIET_S,
    VALIDATION_S,
    WENT,
    Controller,
    Identity,
    Observed,
)

HERE = Identity("11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222")
ELSEWHERE = "33333333-3333-4333-8333-333333333333"
AT_HOME = Observed(workspace="w", session_id=None, ready=True, blocked=False)


class View:
    """Keeps what it was asked for; the test decides when and how each ends."""

    def __init__(self) -> None:
        self.controller: Controller | None = None
        self.state = AT_HOME
        self.validations: list = []
        self.navigations: list = []
        self.shown: list[str] = []

    def validate(self, session_id, done) -> None:
        self.validations.append(done)

    def navigate(self, session_id, done) -> None:
        self.navigations.append((session_id, done))
        self.shown.append(session_id)

    def become(self, **changes) -> None:
        self.state = replace(self.state, **changes)
        self.controller.observe(self.state)

    def arrive(self) -> None:
        """Finish the oldest navigation as asked."""
        session_id, done = self.navigations.pop(0)
        self.become(session_id=session_id)
        done(WENT)


class Caller:
    """One request's place for its answer."""

    def __init__(self) -> None:
        self.answers: list[dict] = []

    def __call__(self, answer: dict) -> None:
        self.answers.append(answer)

    @property
    def code(self) -> str | None:
        return self.answers[0].get("code", self.answers[0]["status"]) if self.answers else None


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def view():
    return View()


@pytest.fixture
def controller(view, clock):
    view.controller = Controller(view, HERE, clock)
    view.controller.observe(view.state)
    return view.controller


def asking(generation: str, revision: int, session_id: str) -> wire.SelectSession:
    return wire.SelectSession(
        request_id=str(uuid.uuid4()),
        instance_id=HERE.instance_id,
        generation=generation,
        expected_revision=revision,
        session_id=session_id,
    )


def request(controller, session_id="ses_a", **changes) -> wire.SelectSession:
    seen = controller.context()["context"] if not controller.revoked else {"revision": 0}
    made = asking(HERE.generation, seen["revision"], session_id)
    return changed(made, **changes)


def select(controller, asked) -> Caller:
    caller = Caller()
    controller.select(asked, caller)
    return caller


def test_the_first_context_has_revision_0_and_says_what_is_observed(controller):
    assert controller.context() == {
        "status": "context",
        "context": {
            "instanceId": HERE.instance_id,
            "generation": HERE.generation,
            "revision": 0,
            "route": "home",
            "ready": True,
            "blocked": False,
        },
    }


def test_a_view_that_was_never_observed_is_not_ready(view, clock):
    seen = Controller(view, HERE, clock).context()["context"]
    assert (seen["route"], seen["ready"], seen["blocked"], seen["revision"]) == ("home", False, True, 0)


@pytest.mark.parametrize(
    "change", [{"workspace": "v"}, {"session_id": "ses_b"}, {"ready": False}, {"blocked": True}], ids=str
)
def test_every_change_of_the_observed_state_grows_the_revision(controller, view, change):
    view.become(**change)
    assert controller.context()["context"]["revision"] == 1
    view.become()
    assert controller.context()["context"]["revision"] == 1


def test_the_workspace_is_in_no_answer(controller, view):
    view.become(workspace="secret-place")
    assert "secret-place" not in str(controller.context())


def test_each_input_of_the_user_grows_the_revision_and_blocks_for_a_second_and_a_half(controller, clock):
    controller.human_input(clock.now_s)
    first = controller.context()["context"]
    controller.human_input(clock.now_s)
    second = controller.context()["context"]
    assert first["blocked"]
    assert second["revision"] > first["revision"] > 0
    clock.now_s += QUIET_S - 0.001
    assert controller.context()["context"]["blocked"]
    clock.now_s += 0.001
    quiet = controller.context()["context"]
    assert not quiet["blocked"]
    assert quiet["revision"] > second["revision"]


def test_an_input_that_may_have_come_later_blocks_from_then_on(controller, clock):
    controller.human_input(clock.now_s + 1.0)
    clock.now_s += 1.0 + QUIET_S - 0.001
    assert controller.context()["context"]["blocked"]


def test_the_guard_names_the_first_thing_that_is_wrong(controller, view, clock):
    """Each refusal hides the ones after it."""
    view.become(ready=False, blocked=True)
    wrong = request(controller, expected_revision=99, generation=ELSEWHERE)
    assert select(controller, wrong).code == "stale_target"
    assert select(controller, changed(wrong, request_id=ELSEWHERE, generation=HERE.generation)).code == "stale_revision"
    assert select(controller, request(controller)).code == "not_ready"
    view.become(ready=True)
    assert select(controller, request(controller)).code == "user_active"
    view.become(blocked=False)
    assert select(controller, request(controller)).code is None
    controller.revoke()
    assert select(controller, request(controller, generation=ELSEWHERE)).code == "revoked"


def test_a_navigation_is_applied_with_the_context_after_it(controller, view):
    caller = select(controller, request(controller, "ses_a"))
    view.validations.pop()(None)
    view.arrive()
    (answer,) = caller.answers
    assert answer["status"] == "applied"
    assert answer["context"] == controller.context()["context"]
    assert answer["context"]["sessionId"] == "ses_a"


def test_an_unknown_session_is_unavailable_and_nothing_happens(controller, view):
    caller = select(controller, request(controller))
    view.validations.pop()("target_unavailable")
    assert caller.code == "target_unavailable"
    assert view.shown == []


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"workspace": "v"}, "stale_revision"),
        ({"ready": False}, "stale_revision"),
        ({"blocked": True}, "stale_revision"),
    ],
    ids=str,
)
def test_what_changes_while_validating_is_seen_by_the_second_guard(controller, view, change, code):
    caller = select(controller, request(controller))
    view.become(**change)
    view.validations.pop()(None)
    assert caller.code == code
    assert view.shown == []


def test_an_unknown_session_is_unavailable_whatever_else_changed_meanwhile(controller, view):
    caller = select(controller, request(controller))
    view.become(workspace="v")
    view.validations.pop()("target_unavailable")
    assert caller.code == "target_unavailable"


def test_a_key_pressed_while_validating_stops_the_navigation(controller, view, clock):
    caller = select(controller, request(controller))
    controller.human_input(clock.now_s)
    view.validations.pop()(None)
    assert caller.code == "stale_revision"
    assert view.shown == []


def test_a_navigation_that_a_key_kept_from_happening_is_refused_and_not_unknown(controller, view, clock):
    caller = select(controller, request(controller))
    view.validations.pop()(None)
    _, done = view.navigations.pop()
    controller.human_input(clock.now_s)
    done(FENCED)
    assert caller.code == "stale_revision"
    assert select(controller, request(controller)).code == "user_active", "the gate is open again"


@pytest.mark.parametrize("code", ["not_ready", "target_unavailable", "user_active"])
def test_the_views_own_reason_is_the_answer(controller, view, code):
    caller = select(controller, request(controller))
    view.validations.pop()(code)
    assert caller.code == code
    assert view.shown == []


@pytest.mark.parametrize("quiet_s", [QUIET_S, 5.0])
def test_the_user_may_want_a_longer_rest(view, clock, quiet_s):
    made = view.controller = Controller(view, HERE, clock, quiet_s=quiet_s)
    made.observe(view.state)
    made.human_input(clock.now_s)
    clock.now_s += quiet_s - 0.001
    assert made.context()["context"]["blocked"]
    clock.now_s += 0.001
    assert not made.context()["context"]["blocked"]


@pytest.mark.parametrize("ends", ["elsewhere", "refused", "raises"])
def test_a_navigation_that_did_not_arrive_has_an_unknown_outcome(controller, view, ends):
    caller = select(controller, request(controller))
    if ends == "raises":
        view.navigate = lambda session_id, done: 1 / 0
        view.validations.pop()(None)
    else:
        view.validations.pop()(None)
        _, done = view.navigations.pop()
        view.become(session_id="ses_b")
        done(WENT if ends == "elsewhere" else FAILED)
    assert caller.code == "outcome_unknown"
    assert select(controller, request(controller)).code is None, "the gate is open again"


def test_a_validator_that_raises_is_an_internal_error_and_opens_the_gate(controller, view):
    validate = view.validate
    view.validate = lambda session_id, done: 1 / 0
    assert select(controller, request(controller)).code == "internal_error"
    view.validate = validate
    assert select(controller, request(controller)).code is None


def test_a_second_navigation_is_refused_while_one_is_under_way(controller, view):
    first = select(controller, request(controller))
    assert select(controller, request(controller)).code == "busy"
    view.validations.pop()(None)
    assert select(controller, request(controller)).code == "busy"
    view.arrive()
    assert first.code == "applied"
    assert select(controller, request(controller)).code is None


def test_a_slow_validation_exceeds_its_deadline_and_keeps_the_gate_until_it_settles(controller, view, clock):
    caller = select(controller, request(controller))
    assert controller.next_deadline_s() == clock.now_s + VALIDATION_S
    clock.now_s += VALIDATION_S - 0.001
    controller.tick()
    assert caller.code is None
    clock.now_s += 0.001
    controller.tick()
    assert caller.code == "deadline_exceeded"
    assert controller.next_deadline_s() is None
    assert select(controller, request(controller)).code == "busy"
    view.validations.pop()(None)
    assert view.shown == []
    assert select(controller, request(controller)).code is None


def test_a_validation_that_settles_late_navigates_nowhere_even_before_the_timer_fired(controller, view, clock):
    caller = select(controller, request(controller))
    clock.now_s += VALIDATION_S
    view.validations.pop()(None)
    assert caller.code == "deadline_exceeded"
    assert view.shown == []


def test_a_navigation_that_never_settles_has_an_unknown_outcome_at_the_deadline(controller, view, clock):
    caller = select(controller, request(controller))
    view.validations.pop()(None)
    clock.now_s += VALIDATION_S
    controller.tick()
    assert caller.code == "outcome_unknown"
    assert select(controller, request(controller)).code == "busy"


def test_a_caller_that_hangs_up_while_validating_cancels(controller, view):
    asked = request(controller)
    caller = select(controller, asked)
    controller.hang_up(caller)
    view.validations.pop()(None)
    assert view.shown == []
    assert caller.answers == [], "there is nobody to answer"
    assert select(controller, asked).code == "cancelled", "the receipt says what came of it"


def test_a_caller_that_hangs_up_while_navigating_leaves_a_receipt_of_what_happened(controller, view):
    asked = request(controller)
    caller = select(controller, asked)
    view.validations.pop()(None)
    controller.hang_up(caller)
    view.arrive()
    assert select(controller, asked).code == "applied"


def test_the_same_request_again_gets_the_first_answer_and_runs_nothing(controller, view, clock):
    asked = request(controller, "ses_a")
    first = select(controller, asked)
    joined = select(controller, asked)
    view.validations.pop()(None)
    view.arrive()
    assert first.answers == joined.answers
    view.become(session_id="ses_b")
    controller.human_input(clock.now_s)
    assert select(controller, asked).answers == first.answers
    assert view.shown == ["ses_a"]


def test_one_of_two_callers_hanging_up_does_not_take_the_navigation_from_the_other(controller, view):
    asked = request(controller)
    first, joined = select(controller, asked), select(controller, asked)
    controller.hang_up(first)
    view.validations.pop()(None)
    view.arrive()
    assert joined.code == "applied"


def test_a_request_id_with_other_arguments_is_a_conflict(controller, view):
    asked = request(controller)
    select(controller, asked)
    assert select(controller, changed(asked, session_id="ses_other")).code == "request_conflict"


def test_the_129th_request_is_refused_while_reads_and_old_receipts_still_work(controller, view):
    first = request(controller, expected_revision=5)
    assert select(controller, first).code == "stale_revision"
    for _ in range(MAX_RECEIPTS - 1):
        assert select(controller, request(controller, expected_revision=5)).code == "stale_revision"
    assert select(controller, request(controller)).code == "request_limit"
    assert select(controller, first).code == "stale_revision"
    assert select(controller, changed(first, session_id="ses_z")).code == "request_conflict"
    assert controller.context()["status"] == "context"


def test_revoking_fences_a_pending_navigation_at_once(controller, view):
    caller = select(controller, request(controller))
    controller.revoke()
    assert caller.code == "revoked"
    view.validations.pop()(None)
    assert view.shown == []
    assert controller.context() == {"status": "rejected", "code": "revoked"}
    controller.revoke()
    assert len(caller.answers) == 1


def test_revoking_a_navigation_that_has_left_does_not_claim_that_it_was_stopped(controller, view):
    caller = select(controller, request(controller))
    view.validations.pop()(None)
    controller.revoke()
    assert caller.code == "outcome_unknown"


class Interleavings(RuleBasedStateMachine):
    """Anything in any order: callers, the user, time, the view, revocation."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.view = View()
        self.controller = self.view.controller = Controller(self.view, HERE, self.clock)
        self.controller.observe(self.view.state)
        self.asked: list[tuple[wire.SelectSession, Caller]] = []
        self.gone: set[int] = set()
        self.first_answers: dict[wire.SelectSession, dict] = {}
        self.last_revision = 0
        self.last_input_s = -1e9
        self.shown_before_revoke: list[str] | None = None
        # What held when each navigation left; filled by the wrapped view.
        self.departures: list[tuple[str, bool]] = []
        navigate = self.view.navigate

        def watched(session_id, done):
            asked, caller = self.departing
            same = [caller for other, caller in self.asked if other == asked]
            wanted = not caller.answers and any(id(caller) not in self.gone for caller in same)
            context = self.controller.context()
            fresh = (
                context["status"] == "context"
                and context["context"]["revision"] == asked.expected_revision
                and context["context"]["ready"]
                and not context["context"]["blocked"]
                and self.clock.now_s - self.last_input_s >= QUIET_S
            )
            # Noted, not asserted: the controller takes a view that raises for a failed one.
            self.departures.append((asked.request_id, fresh and wanted))
            navigate(session_id, done)

        def watched_validate(session_id, done):
            self.departing = self.asked[-1]
            self.view.validations.append(done)

        self.view.navigate = watched
        self.view.validate = watched_validate

    def ask(self, asked: wire.SelectSession) -> None:
        caller = Caller()
        self.asked.append((asked, caller))
        self.controller.select(asked, caller)

    @rule(session=st.sampled_from("abc"), behind=st.integers(-1, 1), stranger=st.booleans())
    def select_anew(self, session, behind, stranger):
        revision = max(0, self.last_revision + behind) if behind else self.revision()
        generation = ELSEWHERE if stranger else HERE.generation
        self.ask(asking(generation, revision, f"ses_{session}"))

    @precondition(lambda self: not self.controller.revoked)
    @rule(session=st.sampled_from("abc"))
    def select_fresh(self, session):
        self.ask(asking(HERE.generation, self.revision(), f"ses_{session}"))

    @precondition(lambda self: self.asked)
    @rule(back=st.integers(1, 9), other=st.booleans())
    def select_again(self, back, other):
        asked, _ = self.asked[-min(back, len(self.asked))]
        if other:
            asked = changed(asked, session_id="ses_other")
        before = len(self.view.shown)
        self.ask(asked)
        assert len(self.view.shown) == before

    @precondition(lambda self: self.asked)
    @rule(back=st.integers(1, 3))
    def hang_up(self, back):
        _, caller = self.asked[-min(back, len(self.asked))]
        self.gone.add(id(caller))
        self.controller.hang_up(caller)

    @precondition(lambda self: self.view.validations)
    @rule(known=st.booleans(), again=st.booleans())
    def validated(self, known, again):
        done = self.view.validations.pop(0)
        refusal = None if known else "target_unavailable"
        done(refusal)
        if again:
            done(refusal)

    @precondition(lambda self: self.view.navigations)
    @rule(end=st.sampled_from([WENT, FENCED, FAILED]))
    def navigated(self, end):
        if end == WENT:
            self.view.arrive()
        else:
            self.view.navigations.pop(0)[1](end)

    @rule(change=st.sampled_from([{"ready": False}, {"blocked": True}]))
    def view_is_not_to_be_touched(self, change):
        self.view.become(**change)

    @rule()
    def user_rests(self):
        self.view.become(ready=True, blocked=False)
        self.clock.now_s += QUIET_S
        self.controller.tick()

    @rule(session=st.sampled_from([None, "ses_a", "ses_b"]), workspace=st.sampled_from("vw"))
    def user_moves(self, session, workspace):
        self.view.become(session_id=session, workspace=workspace)

    @rule()
    def user_types(self):
        before = self.revision() if not self.controller.revoked else None
        self.last_input_s = self.clock.now_s
        self.controller.human_input(self.clock.now_s)
        assert before is None or self.revision() > before

    @rule(seconds=st.sampled_from([0.1, 0.7, 1.5, 4.0]))
    def time_passes(self, seconds):
        self.clock.now_s += seconds
        self.controller.tick()

    @rule(really=st.integers(0, 9))
    def revoke(self, really):
        if really == 0:
            self.controller.revoke()
            if self.shown_before_revoke is None:
                self.shown_before_revoke = list(self.view.shown)

    def revision(self) -> int:
        answer = self.controller.context()
        return self.last_revision if answer["status"] == "rejected" else answer["context"]["revision"]

    @invariant()
    def no_navigation_left_without_a_fresh_revision_a_quiet_user_and_a_waiting_caller(self):
        assert all(right for _, right in self.departures)

    @invariant()
    def no_request_id_navigated_twice(self):
        ids = [request_id for request_id, _ in self.departures]
        assert len(ids) == len(set(ids))

    @invariant()
    def nothing_navigates_after_a_revocation(self):
        assert self.shown_before_revoke is None or self.view.shown == self.shown_before_revoke

    @invariant()
    def at_most_one_navigation_is_under_way(self):
        assert len(self.view.validations) + len(self.view.navigations) <= 1

    @invariant()
    def every_caller_gets_one_answer_at_most_and_equal_requests_get_equal_ones(self):
        for asked, caller in self.asked:
            assert len(caller.answers) <= 1
            if not caller.answers or caller.code in ("request_conflict", "request_limit", "revoked"):
                continue
            if caller.code == "applied":
                assert caller.answers[0]["context"]["sessionId"] == asked.session_id
            assert self.first_answers.setdefault(asked, caller.answers[0]) == caller.answers[0]

    @invariant()
    def the_revision_never_goes_back(self):
        revision = self.revision()
        assert revision >= self.last_revision
        self.last_revision = revision

    @invariant()
    def nobody_waits_without_a_deadline(self):
        waiting = [1 for _, caller in self.asked if not caller.answers and id(caller) not in self.gone]
        assert not waiting or self.controller.next_deadline_s() is not None


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
