"""A hand-written conversation of two friends over a year, and questions with the turns that answer them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

MONTHS = {
    "2025-02-03": """
        Ines: I finally signed the lease for the workshop on Harbour Street.
        Tomas: Congratulations! How big is it?
        Ines: Sixty square metres, with a skylight. The kiln arrives next Tuesday.
        Tomas: What will you fire first?
        Ines: A set of twelve soup bowls for my grandmother Odile.
        Tomas: She will be so proud. My week was all about spreadsheets.
    """,
    "2025-03-19": """
        Tomas: I adopted a greyhound yesterday!
        Ines: No way! What is the name?
        Tomas: Biscuit. She is six and afraid of stairs.
        Ines: Poor thing. Does she get along with your parrot?
        Tomas: They ignore each other, which is the best I could hope for.
        Ines: Send me a picture soon. [photo: a grey dog asleep on a blue rug]
    """,
    "2025-05-08": """
        Ines: My doctor says I must not eat walnuts any more.
        Tomas: Since when? You put them on everything.
        Ines: Since my lips swelled up at the picnic. Hazelnuts are fine, luckily.
        Tomas: Then no more of my banana bread for you.
        Ines: You could leave them out, you know.
        Tomas: Blasphemy. But for you I will try.
    """,
    "2025-07-21": """
        Tomas: We drove to the Jura and slept in a fire tower.
        Ines: Was it high?
        Tomas: Thirty metres. Lena counted every step, 164 of them.
        Ines: And the weather?
        Tomas: A thunderstorm at three in the morning. We did not sleep much.
        Ines: I would have been terrified.
    """,
    "2025-09-14": """
        Ines: The gallery in Ghent wants eight of my vases for November.
        Tomas: That is enormous! Who discovered you?
        Ines: A curator called Wim Dekker, he bought a jug at the market.
        Tomas: What do they pay?
        Ines: Four hundred euros apiece, minus their share.
        Tomas: Dinner is on you, then.
    """,
    "2025-11-30": """
        Tomas: I handed in my notice on Friday.
        Ines: You left the bank? After eleven years?
        Tomas: Yes. From January I will train as a nurse.
        Ines: What made you decide?
        Tomas: The weeks beside my father's bed in the clinic.
        Ines: He would like that very much.
    """,
}
CHATTER = """
    Ines: How was your weekend?|Tomas: Quiet, mostly laundry and a film.|Ines: Which one?|Tomas: I forgot already.
    Tomas: Did you sleep well?|Ines: Not really, the neighbours had guests.|Tomas: Again?|Ines: Every single Saturday.
    Ines: The train was late this morning.|Tomas: Mine too, there was ice on the rails.|Ines: Typical.|Tomas: I walked.
    Tomas: I cooked lentils.|Ines: With what?|Tomas: Carrots and far too much pepper.|Ines: I can smell it from here.
    Ines: Do you still run?|Tomas: Only for the bus.|Ines: Ha! Same here.|Tomas: We are getting old.
    Tomas: My phone is broken.|Ines: Drop it again?|Tomas: Into the sink.|Ines: Rice, they say. I never believed it.
    Ines: It rained all day.|Tomas: Here the sun came out at noon.|Ines: Lucky you.|Tomas: I sat on the balcony and read.
    Tomas: The choir rehearsal was long.|Ines: What do you sing?|Tomas: Something by Bach, very fast.|Ines: Poor tenors.
"""


@dataclass(frozen=True)
class Asked:
    question: str
    answers: tuple[str, ...]
    """Beginnings of the turns that contain the answer."""


ASKED = (
    Asked("What is Tomas's dog called?", ("Tomas: Biscuit.",)),
    Asked("When did Tomas adopt his dog?", ("Tomas: I adopted a greyhound",)),
    Asked("Which nuts can Ines not eat?", ("Ines: My doctor says", "Ines: Since my lips")),
    Asked("How many steps did the fire tower have?", ("Tomas: Thirty metres.",)),
    Asked("In which tower was Tomas on July 20, 2025?", ("Tomas: We drove to the Jura",)),
    Asked("Who is the curator that discovered Ines?", ("Ines: A curator called Wim Dekker",)),
    Asked(
        "How much does the gallery pay for a vase?",
        ("Ines: Four hundred euros", "Ines: The gallery in Ghent"),
    ),
    Asked("What did Ines make for her grandmother?", ("Ines: A set of twelve soup bowls",)),
    Asked("Why does Tomas become a nurse?", ("Tomas: Yes. From January", "Tomas: The weeks beside")),
    Asked("What did Ines sign in February 2025?", ("Ines: I finally signed the lease",)),
    Asked("What colour is the rug the dog sleeps on?", ("Ines: Send me a picture soon.",)),
    Asked("When does the kiln arrive at the workshop?", ("Ines: Sixty square metres",)),
)


@dataclass(frozen=True)
class Line:
    text: str
    at: datetime

    @property
    def role(self) -> str:
        return "user" if self.text.startswith("Ines") else "assistant"


def lines() -> list[Line]:
    """Return the lines of all months, each month followed by sixty lines of small talk."""
    return list(_lines())


def _lines() -> Iterator[Line]:
    talks = [[line.strip() for line in talk.split("|")] for talk in CHATTER.strip().splitlines()]
    for month, said in MONTHS.items():
        at = datetime.fromisoformat(f"{month}T18:00").replace(tzinfo=UTC)
        for number, text in enumerate(said.strip().splitlines()):
            yield Line(text.strip(), at + timedelta(minutes=number))
        for number in range(60):
            talk = talks[(number // 4 + len(month)) % len(talks)]
            yield Line(f"{talk[number % 4]} ({month}, {number})", at + timedelta(days=1 + number // 8))
