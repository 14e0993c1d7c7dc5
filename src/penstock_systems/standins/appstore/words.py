"""The words that markets, titles and developers are made of."""

from __future__ import annotations

import re

# name | primary genre | keywords
_TOPICS = """
budget|6015|budget money expense savings spending bills wallet ledger
invoice|6000|invoice billing receipt estimate quote freelance contractor payments
sleep|6013|sleep noise snore lullaby dream insomnia relax rain
meditation|6013|meditation mindfulness breathing calm anxiety zen focus mantra
workout|6013|workout fitness gym strength muscle exercise training reps
running|6013|running marathon jogging treadmill pace distance route sprint
fasting|6013|fasting diet calorie nutrition weight macros keto meal
yoga|6013|yoga stretching pilates posture flexibility asana balance core
habit|6007|habit routine streak goals discipline morning checklist daily
notes|6007|notes notebook journal writing markdown memo outline sketch
calendar|6007|calendar schedule agenda shift appointment reminder weekly events
scanner|6000|scanner document pdf signature fax receipt paper archive
vpn|6002|vpn proxy privacy secure tunnel browser blocker network
cleaner|6002|cleaner storage duplicate cleanup contacts space files compress
keyboard|6002|keyboard fonts emoji typing themes stickers symbols swipe
alarm|6002|alarm clock wakeup timer stopwatch bedtime countdown snooze
recipe|6023|recipe cooking kitchen dinner baking vegan grocery pantry
wine|6023|wine cellar whisky cocktail beer tasting vineyard bar
coffee|6023|coffee espresso brew barista beans cafe latte roast
plants|6017|plants garden flower identify watering botany leaf gardening
birds|6006|birds birding wildlife species nature identify songs butterfly
astronomy|6006|astronomy stars planets sky moon telescope constellation comet
language|6017|language vocabulary grammar spanish french japanese phrases flashcards
maths|6017|maths algebra geometry homework equation fractions solver calculus
exam|6017|exam quiz study test driving theory license practice
piano|6011|piano guitar chords tuner metronome ukulele sheet lessons
podcast|6011|podcast radio audio stations audiobook player stream episodes
photo|6008|photo editor filters collage retouch background camera portrait
video|6008|video montage clips reels subtitles slideshow trim effects
logo|6027|logo poster banner flyer design branding invitation template
travel|6003|travel trip itinerary packing flights hotel passport luggage
hiking|6010|hiking trails maps offline compass camping altitude mountains
parking|6010|parking car mileage fuel charging garage traffic driver
dating|6005|dating singles chat match friends meet video romance
pregnancy|6020|pregnancy baby contraction newborn fertility ovulation trimester kick
medication|6020|medication pill dosage pharmacy prescription symptoms migraine glucose
puzzle|7012|puzzle jigsaw sudoku blocks match tiles nonogram merge
words|7019|words crossword anagram spelling letters hangman scramble search
racing|7013|racing drift rally karts motorbike truck speed highway
chess|7004|chess checkers backgammon domino board strategy openings tactics
tycoon|7015|tycoon idle farm factory restaurant hospital airport village
zombie|7001|zombie shooter survival sniper battle monsters apocalypse arena
wardrobe|6012|wardrobe outfit style fashion closet makeup hair tattoo
pets|6012|pets dog puppy cat training walks veterinary breed
interior|6012|interior furniture decor room floorplan renovation paint home
stocks|6015|stocks crypto portfolio dividend trading market watchlist forex
coupons|6024|coupons deals cashback discount outlet shopping prices vouchers
football|6004|football scores league fixtures soccer tennis cricket standings
weather|6001|weather radar forecast storm lightning tides wind snow
coding|6026|coding python terminal git server json regex snippets
"""
TOPICS: list[tuple[str, int, list[str]]] = [
    (name, int(genre), words.split())
    for name, genre, words in (line.split("|") for line in _TOPICS.strip().splitlines())
]
# When there are more markets than topics, the same topic returns for somebody else.
AUDIENCES = (
    """
kids toddler family;students college campus;seniors elderly simple;couples partner shared;teachers classroom school
women ladies girls;men guys beard;nurses hospital ward;pilots aviation cockpit;farmers tractor harvest
drivers trucker cabin;artists studio painter;gamers console stream;athletes coach team;church bible prayer
nomads remote abroad;startups founder team;beginners basics easy;teens youth club;doctors clinic patient
""".replace("\n", ";")
    .strip(";")
    .split(";")
)

KEYWORDS = 8  # a market
MODIFIERS = """
tracker planner diary coach calculator timer assistant guide manager master studio pocket widget online
offline express club hub lab world deluxe daily smart quick
""".split()

# The first modifiers in scripts other than Latin, in the same order.
SCRIPTS = """
трекер планер дневник тренер калькулятор таймер
ιχνηλάτης πλάνο ημερολόγιο προπονητής αριθμομηχανή χρονόμετρο
מעקב תכנון יומן מאמן מחשבון טיימר
متتبع مخطط يوميات مدرب حاسبة مؤقت
ट्रैकर योजना डायरी कोच गणक टाइमर
記録 計画 日記 コーチ 計算機 タイマー
기록 계획 일기 코치 계산기 타이머
追踪 计划 日记 教练 计算器 计时器
""".strip().splitlines()
TRANSLATIONS: list[list[str]] = [line.split() for line in SCRIPTS]

SYLLABLES = [consonant + vowel for consonant in "bcdfghjklmnprstvwz" for vowel in "aeiou"]
BRAND_ENDINGS = ("", "ly", "ify", "x", "n", "r")
SELLERS = ("Labs LLC", "Software GmbH", "Inc.", "Studio", "Apps Ltd", "Co., Ltd.", "S.L.", "Games Oy")

_WORD = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    """Lower case, one number: what a search compares."""
    return [singular(word) for word in _WORD.findall(text.casefold())]


def singular(word: str) -> str:
    return word[:-1] if len(word) > 4 and word.endswith("s") else word
