"""After kill -9 in the middle of a plan the results are kept, and only the unfinished steps are repeated."""

from __future__ import annotations

import json

from tests.reliability.installation import Installation, kill_group
from tests.reliability.people import Person
from tests.reliability.scripting import Script, new_key, slowly, words
from tests.servers.waiting import wait_for

GOAL_MET = '{"goal_met": true, "confidence": 1}'


def test_a_killed_plan_keeps_its_results_and_can_be_continued(
    installation: Installation, alice: Person, alice_elsewhere: Person, script: Script
) -> None:
    key, first, second = new_key("plan"), new_key("first"), new_key("second")
    steps = [
        {"id": "a", "title": "First", "task": f"Find {first}."},
        {"id": "b", "title": "Second", "task": f"Find {second}."},
    ]
    script.answer(key, json.dumps({"steps": steps}), GOAL_MET)
    script.answer(first, "A is 1.")
    script.answer(second, slowly(words(400)), "B is 2.")
    conversation = alice.new_conversation()
    sent = alice.send(conversation, f"{key} What of A and B?", mode="plan")
    script.wait_for_request(second, event="first_token")
    wait_for(
        lambda: "done" in [step["state"] for step in alice.run(sent["run_id"])["plan"] or ()],
        what="the first step is done",
    )
    kill_group(installation.first)
    installation.start()

    ended = alice_elsewhere.wait_for_end(sent["run_id"])
    assert (ended["status"], ended["mode"]) == ("interrupted", "plan")
    assert [(step["state"], step["result"]) for step in ended["plan"]] == [
        ("done", "A is 1."),
        ("skipped", ""),
    ]
    assert ended["usage"]["input_tokens"] > 0

    # The service writes the question of a continued run. It has no key, so the analyst and the answer get the defaults.
    continued = alice_elsewhere.act(f"runs/{sent['run_id']}/continue")
    run = alice_elsewhere.wait_for_end(continued["run_id"])
    assert (run["status"], run["mode"]) == ("complete", "plan")
    assert [(step["state"], step["result"]) for step in run["plan"]] == [
        ("done", "A is 1."),
        ("done", "B is 2."),
    ]
    assert (len(script.requests(first)), len(script.requests(second))) == (1, 2)
