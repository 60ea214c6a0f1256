"""Questions that have nothing to do with anybody's history: how many of them recall something all the same."""

from __future__ import annotations

FOREIGN = """
How does photosynthesis work?
What is a monad?
Make a table of the planets
What is the capital of Mongolia?
Explain the difference between TCP and UDP
How do I sort a list in Python?
What year did the Berlin Wall fall?
Write a haiku about autumn
Who wrote The Brothers Karamazov?
What is the boiling point of ethanol?
How do vaccines work?
Translate "good morning" into Finnish
What's the time complexity of quicksort?
Give me a regular expression for e-mail addresses
Who won the world cup in 1974?
What is the square root of 1764?
How long does it take to boil an egg?
Summarise the plot of Hamlet
What does the mitochondrion do?
How many moons does Jupiter have?
Explain recursion to a child
What is the difference between affect and effect?
How can I improve the performance of a SQL query?
Name the seven wonders of the ancient world
What causes inflation?
Why is the sky blue?
How does a transformer model work?
Convert 75 Fahrenheit to Celsius
What is the GDP of Brazil?
Which elements are noble gases?
"""


def measure(name: str, user_id: object, own: list[str]) -> None:
    """`own` are questions that the history answers."""
    foreign = FOREIGN.strip().splitlines()
    let_through = sum(_recalls(user_id, question) for question in foreign)
    held_back = sum(not _recalls(user_id, question) for question in own)
    print(
        f"  {name}: {let_through} of {len(foreign)} foreign questions recall something,"
        f" {held_back} of its own {len(own)} nothing",
        flush=True,
    )


def _recalls(user_id: object, question: str) -> bool:
    from chatapp.operations import clock
    from chatapp.recall.turn_recall import recall_for
    from memory.ranking import RecallSize

    room = RecallSize(2_000, 8_000)
    return bool(recall_for(user_id=user_id, question=question, now=clock.now(), room=room))  # type: ignore[arg-type]
