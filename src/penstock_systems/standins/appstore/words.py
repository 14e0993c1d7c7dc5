"""The words that markets, titles and developers are made of."""

from __future__ import annotations

import re
from dataclasses import dataclass

KEYWORDS = 10  # a market
OWN_KEYWORDS = 8  # of these; the others it shares with its neighbours

# A line without a bar opens a family: its name and the words that its members share. Then each member:
# name | genres, the commonest first | keywords of its own
_TOPICS = """
money cash bank tax payday
budget|6015 6007 6012|budget expense savings spending bills ledger debt allowance
invoice|6000 6015 6007|invoice billing estimate quote freelance contractor receipt clients
stocks|6015 6009 6000|stocks crypto portfolio dividend trading forex etf watchlist
coupons|6024 6012 6015|coupons deals cashback discount outlet vouchers promo loyalty
wellbeing wellness calm health mindset
sleep|6013 6012 6020|sleep noise snore lullaby dream insomnia nap rain
meditation|6013 6012 6017|meditation mindfulness breathing anxiety zen mantra chakra gratitude
fasting|6013 6023 6020|fasting diet calorie nutrition macros keto weight meal
yoga|6013 6017 6012|yoga stretching pilates posture flexibility asana balance spine
sport active cardio athlete season
workout|6013 6004 6012|workout fitness gym strength muscle reps barbell squat
running|6013 6004 6010|running marathon jogging treadmill distance sprint pace interval
football|6004 6009 6016|football scores league fixtures soccer standings tennis cricket
cycling|6004 6013 6010|cycling bike cadence peloton bicycle ride gravel pedal
planning focus tasks organizer productivity
habit|6007 6013 6012|habit routine streak goals discipline morning checklist resolution
notes|6007 6002 6017|notes notebook journal markdown memo outline sketch writing
calendar|6007 6000 6002|calendar schedule agenda shift appointment events reminder weekly
alarm|6002 6007 6012|alarm clock wakeup stopwatch bedtime snooze countdown hourglass
tools phone files secure backup
scanner|6000 6007 6002|scanner document pdf signature fax archive copier barcode
vpn|6002 6007 6000|vpn proxy privacy tunnel browser blocker firewall hotspot
cleaner|6002 6007 6008|cleaner storage duplicate cleanup contacts compress cache junk
keyboard|6002 6016 6007|keyboard fonts emoji typing themes symbols swipe stickers
table food taste drinks menu
recipe|6023 6012 6013|recipe cooking kitchen dinner baking pantry vegan grocery
wine|6023 6012 6024|wine cellar whisky cocktail beer vineyard tasting sommelier
coffee|6023 6012 6017|coffee espresso brew barista beans latte roast cafe
nature outdoor field wild explorer
plants|6017 6012 6006|plants garden flower watering botany leaf orchid succulent
birds|6006 6017 6012|birds birding species butterfly feather nest owl songbird
astronomy|6006 6017 6001|astronomy planets telescope constellation comet moon galaxy eclipse
weather|6001 6010 6002|weather radar forecast storm lightning tides wind snow
hiking|6010 6003 6013|hiking trails compass camping altitude mountains backpack summit
learning learn lessons school grade
language|6017 6006 6003|language vocabulary grammar spanish japanese phrases french flashcards
maths|6017 6002 6006|maths algebra geometry equation fractions calculus solver multiplication
exam|6017 6006 6000|exam quiz study theory license revision driving certificate
coding|6026 6017 6002|coding python terminal git regex snippets server javascript
stage music sound studio melody
piano|6011 6017 6016|piano guitar chords tuner metronome ukulele violin notation
podcast|6011 6009 6016|podcast radio stations audiobook stream episodes audio news
karaoke|6011 6016 6005|karaoke singing lyrics vocal duet microphone choir pitch
pictures camera creator frames gallery
photo|6008 6027 6005|photo filters collage retouch portrait selfie background eraser
video|6008 6016 6005|video montage clips reels subtitles slideshow trim transition
logo|6027 6000 6007|logo poster banner flyer branding invitation font brochure
going journey road tourist nearby
travel|6003 6012 6010|travel itinerary packing flights hotel luggage passport visa
parking|6010 6003 6002|parking mileage fuel charging garage traffic truck carwash
transit|6010 6003 6009|transit subway bus timetable commute tram train ferry
people family care partner together
dating|6005 6012 6016|dating singles flirt romance crush soulmate matchmaker blinddate
pregnancy|6020 6013 6012|pregnancy contraction newborn fertility ovulation trimester baby midwife
medication|6020 6013 6002|medication pill dosage pharmacy prescription symptoms migraine glucose
pets|6012 6020 6017|pets puppy kitten veterinary breed leash dog cat
home decor style ideas trend
wardrobe|6012 6024 6005|wardrobe outfit fashion closet makeup tattoo hair sneakers
interior|6012 6027 6024|interior furniture floorplan renovation paint sofa bedroom wallpaper
thinking brain logic relaxing offline
puzzle|7012 7009 6016|puzzle jigsaw sudoku tiles nonogram merge blocks maze
crossword|7019 7012 6017|crossword anagram spelling letters hangman scramble dictionary riddle
chess|7004 7017 7012|chess checkers backgammon domino openings endgame gambit mahjong
acting action hero city multiplayer
racing|7013 7016 7001|racing drift rally karts motorbike highway turbo offroad
tycoon|7015 7017 6016|tycoon idle farm factory restaurant airport village hotelier
zombie|7001 7002 6016|zombie shooter survival sniper monsters apocalypse arena battle
"""


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    genres: tuple[int, ...]
    words: tuple[str, ...]  # the last of them shared with the family
    family: str


def _topics() -> list[Topic]:
    found: list[Topic] = []
    for line in _TOPICS.strip().splitlines():
        if "|" not in line:
            family, *common = line.split()
            place = 0
            continue
        name, genres, own = line.split("|")
        # Two of the words stand next to each other in a ring, so that neighbours share one or two.
        shared = [common[(place + step) % len(common)] for step in range(KEYWORDS - OWN_KEYWORDS)]
        found.append(Topic(name, tuple(map(int, genres.split())), (*own.split(), *shared), family))
        place += 1
    return found


TOPICS = _topics()
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

MODIFIERS = """
tracker planner diary coach calculator timer assistant guide manager master pocket widget online
express club hub lab world deluxe daily smart quick maker live
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

# What apps that belong to no market are called by, beside the name of their genre.
PLAIN_WORDS = "everyday original classic modern urban tiny mobile basic lovely general".split()

# A brand is a quality and a thing, such as Bluefern; where there are more developers than pairs, with an ending.
QUALITIES = """
amber azure bold brave bright brisk calm clear clever copper coral cosy crisp dawn deep early fair fern first fleet fond
fresh gentle giant glad golden grand green happy hazel hidden high honest indigo ivory jade jolly keen kind lemon light
little lively lone loyal lucky lunar mellow merry mild mint misty neat new nimble noble north open orange pale patient
pearl plain plum proud pure quick quiet rapid red river rosy round royal ruby rustic sage sandy sharp shy silent silver
simple sky slow small snowy soft solar south spring stone strong summer sunny sweet swift tidy tiny warm west wild wise
""".split()
THINGS = """
acorn anchor apple arrow badger barn basket bay beacon bear bee bell berry bird boat book branch bridge brook bucket canyon
castle cedar circle cliff cloud clover comb cottage crane creek crown daisy deer desk dove drum eagle elm feather field
finch fire fjord flag flower forest fox gate glade grove harbor hare hawk heron hill hive horn house island ivy jar kettle
key kite lake lamp lane lantern lark leaf lily lion lodge maple meadow mill moss mountain nest oak olive orchard otter
owl panda path peak pebble pen pine pond
""".split()
ENDINGS = ["", *(consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou")]
# Names that have an owner: apps of others are made for those who love them.
FRANCHISES = """
blokoria grumblefox zorbinia velmora tankaroo pixeldorn snorkadia wibblewood karnivex lumigard froskania bramblor thundril
osmoria quillatho
""".split()
SELLERS = ("Labs LLC", "Software GmbH", "Inc.", "Studio", "Apps Ltd", "Co., Ltd.", "S.L.", "Games Oy")

_WORD = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    """Lower case, one number: what a search compares."""
    return [singular(word) for word in _WORD.findall(text.casefold())]


def singular(word: str) -> str:
    return word[:-1] if len(word) > 4 and word.endswith("s") else word
