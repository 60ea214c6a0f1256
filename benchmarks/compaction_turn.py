"""How late an answer starts in a turn with a compaction, compared with a turn without one.

python -m benchmarks.compaction_turn [--turns 20] [--think 0.3]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

from websockets.sync.client import connect

from benchmarks.stage import check, model_server, running_service
from tests.servers.service import Service, run_manage

# 150 messages are below the trigger of this window, 250 above it. No worker runs yet, so nothing is summarised before.
WINDOW = {"LLM_CONTEXT_SIZE": "20000", "LLM_MAX_OUTPUT_TOKENS": "2000"}
PREPARE = """
import json
from chatapp.operations import clock
from chatapp.conversations.actions.imports import ImportedMessage, import_conversation
from chatapp.recall.actions.indexing import index_conversation
from chatapp.accounts.models import User
from tests.acceptance.conversations import long_history
user = User.objects.get()
def make(count):
    history = [ImportedMessage(m["role"], m["content"]) for m in long_history(count)]
    row = import_conversation(user=user, messages=history, now=clock.now())
    index_conversation(row.pk)
    return str(row.pk)
print(json.dumps([[make(150), make(250)] for _ in range({turns})]))
"""


def first_delta_s(service: Service, token: str, conversation: str) -> float:
    """Return the seconds from the send to the first text."""
    with connect(service.ws_url, additional_headers={"Authorization": f"Bearer {token}"}) as socket:
        page = service.client(token).get(f"/api/v1/conversations/{conversation}").json()
        subscribe = {"type": "subscribe", "conversation_id": conversation, "after_seq": page["last_seq"]}
        socket.send(json.dumps(subscribe))
        send = {"type": "message.send", "client_id": conversation, "conversation_id": conversation}
        started, first = time.perf_counter(), 0.0
        socket.send(json.dumps({**send, "content": "What was the code of note 17?"}))
        while True:
            event = json.loads(socket.recv(timeout=30))
            if event["type"] == "text.delta" and not first:
                first = time.perf_counter() - started
            elif event["type"] == "run.finished":
                return first


def measure(turns: int, think_s: float) -> None:
    with model_server("--rate", "200", "--tokens", "20", "--delay", str(think_s)) as model:
        with running_service(model.url, people=1, **WINDOW) as (service, [(token, _)]):
            service.stop()
            printed = check(run_manage(service.env, "shell", "-v0", "-c", PREPARE.format(turns=turns)))
            service.start()
            pairs = json.loads(printed.splitlines()[-1])
            first_delta_s(service, token, pairs.pop(0)[0])  # the first answer of a process loads modules
            times = [[first_delta_s(service, token, one) for one in pair] for pair in pairs]
    none, some = (statistics.median(column) * 1000 for column in zip(*times, strict=True))
    print(f"Start of the answer, median of {len(times)}, a model that thinks {think_s * 1000:.0f} ms")
    print(f"  no compaction       {none:8.1f} ms")
    print(f"  compaction happens  {some:8.1f} ms")
    print(f"  ratio               {some / none:8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=21)
    parser.add_argument("--think", type=float, default=0.3)
    arguments = parser.parse_args()
    measure(arguments.turns, arguments.think)


if __name__ == "__main__":
    main()
