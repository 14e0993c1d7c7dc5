"""How a review sounds, from -1 to 1: its stars say what to expect, its words move that. No model, no chance, no network."""

from __future__ import annotations

import re

CHARACTERS_MAX = 2_000  # looked at in one review; what is longer has made its point
NEGATION_WORDS = 3  # how far a "not" reaches
UNHAPPY = -0.25  # the tone from which on a review complains
STARS_TRUST = 2.0  # the stars weigh as much as so many words of feeling

PRAISE = frozenset(
    """
    accurate addictive adorable amazing awesome beautiful best better brilliant calming charming clean clear clever
    convenient cool cute delightful easy effective efficient elegant engaging enjoy enjoyable enjoyed enjoying essential
    excellent exceptional fabulous fantastic fast favorite favourite fine flawless friendly fun genius gem glad good
    gorgeous grateful great handy happy helped helpful helps impressed impressive improved incredible intuitive invaluable
    joy liked love loved lovely loves loving magnificent marvelous must neat nice outstanding perfect perfectly phenomenal
    pleasant pleased polished powerful pretty quick recommend recommended relaxing reliable responsive satisfied seamless
    simple smart smooth smoothly solid superb stunning super terrific thank thanks thrilled top useful valuable wonderful
    works worth wow yay
    """.split()
)
BLAME = frozenset(
    """
    abandoned abysmal ads annoyed annoying awful bad badly boring bored broke broken bug buggy bugs charged clunky
    complicated confusing crap crash crashed crashes crashing deceptive deleted delete deleting difficult disappointed
    disappointing disappointment disaster disgusting dislike dreadful dumb error errors expensive fail failed failing fails
    fake fault forced freezes freezing froze frozen frustrated frustrating garbage glitch glitches glitchy greedy hate hated
    hates horrible impossible inaccurate incorrect intrusive joke junk lag laggy lags lied lies lose loses losing lost mess
    misleading missing money nightmare nonsense overpriced pathetic pointless poor poorly problem problems refund
    ridiculous rubbish ruined sad scam scammed shame sick slow slows slower spam steal stole stuck stupid sucks terrible
    trash ugly unacceptable unable uninstall uninstalled uninstalling unhappy unplayable unresponsive unreliable unstable
    unusable upset useless waste wasted wasting worse worst worthless wrong
    """.split()
)
NEGATIONS = frozenset(
    """
    not no never none nothing nobody neither nor without hardly barely cannot cant dont doesnt didnt isnt wasnt arent
    werent wont wouldnt shouldnt couldnt aint havent hasnt hadnt
    """.split()
)
STRONGER = frozenset("very really so extremely absolutely totally completely incredibly super truly highly".split())
MISSED = frozenset("work load open save sync connect function understand help".split())  # blame, but only after a "not"
ENDS = frozenset(".,;:!?") | frozenset(
    "but however although though except unfortunately".split()
)  # of what a "not" meant
FELT = PRAISE | BLAME | MISSED

_WORD = re.compile(r"[^\W\d_]+|[.,;:!?]")


def sentiment(title: str, body: str, stars: int | None = None) -> float:
    """From -1 to 1. Without a word of feeling it is what the stars say; without stars it is what the words say."""
    expected = 0.0 if stars is None else (min(5, max(1, stars)) - 3) / 2
    feeling, words = _feeling(f"{title}.{body}"[:CHARACTERS_MAX])
    trust = 0.0 if stars is None else STARS_TRUST
    if not trust + words:
        return 0.0
    return round((trust * expected + feeling) / (trust + words), 4)


def _feeling(text: str) -> tuple[float, float]:
    """The words of praise less those of blame, and how much was said at all."""
    told = _WORD.findall(text.casefold().replace("\u2019", "").replace("'", ""))
    if FELT.isdisjoint(told):
        return 0.0, 0.0
    feeling = said = 0.0
    denied = 0  # how many more words the last "not" reaches
    before = ""
    for word in told:
        if word in NEGATIONS:
            denied = NEGATION_WORDS + 1
        elif word in ENDS:
            denied = 0
        elif word in FELT and (tone := _tone(word, denied > 0)):
            weight = 1.5 if before in STRONGER else 1.0
            feeling += tone * weight
            said += weight
        denied -= denied > 0
        before = word
    return feeling, said


def _tone(word: str, denied: bool) -> int:
    if word in MISSED:
        return -denied
    tone = 1 if word in PRAISE else -1
    return -tone if denied else tone
