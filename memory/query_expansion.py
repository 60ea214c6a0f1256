"""Words that a question is answered by though it does not say them. English, like the stemmer.

Other forms of a word that no stemmer brings together ("went" is a form of "go"), and what belongs to the everyday kinds
a question asks about: it names the kind ("pets"), and the turn that answers it names the thing ("dog").
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from memory.terms import Analyzer

# A form with a star is in everyday use as another word or a name, too: "draw" asks for "drew" as well, but who asks for
# Drew, or what was founded, asks for that word alone. Without those that would find something else more often: "rose",
# "bit", "left", "led", "meant", "rang".
_FORMS = """
become became, begin began begun, bend bent, bite bitten, blow blew blown, break broke broken, bring brought,
build built, buy bought, catch caught, choose chose chosen, come came, deal dealt, dig dug, draw drew* drawn,
drink drank drunk, drive drove driven, eat ate eaten, fall* fell fallen, feed fed, feel felt*, fight fought,
find found*, fly flew flown, forget forgot forgotten, forgive forgave forgiven, freeze froze frozen, get got gotten,
give gave given, go goes went gone, grow grew grown, hang hung, hear heard, hide hid hidden, hold held, keep kept,
know knew known, lend lent, lose lost, make made, meet met, pay paid, ride rode ridden, rise risen, run ran, say said,
see saw* seen, sell sold, send sent, shake shook shaken, shine shone, shoot shot*, show shown, sing sang sung, sit sat*,
sleep slept, speak spoke* spoken, spend spent, stand stood, steal stole* stolen, sweep swept, swim swam swum,
take took taken, teach taught, tell told, think thought, throw threw thrown, tore torn, understand understood,
wake woke* woken, wear wore worn, win won, write wrote written,
child children, man men, woman women, person people, foot feet, tooth teeth, mouse mice, wife wives, knife knives
"""
_OTHER_WORD_TOO = re.compile(r"\w+\*")

# The words before the colon name the kind and mean the same; those behind it are of the kind, or come with it. Forms
# the stemmer does not bring together are written out.
_KINDS = """
family relative: mother mom mum mommy father dad daddy parent son daughter kid child children brother sister
    sibling husband wife spouse grandma grandmother grandpa grandfather grandparent aunt uncle cousin niece
    nephew baby twin
child kid children: son daughter baby toddler teenager boy girl
parent: mother mom mum father dad
sibling: brother sister twin
spouse partner: husband wife boyfriend girlfriend fiance marry
relationship marital: husband wife boyfriend girlfriend partner fiance date marry wedding engaged single
    breakup divorce
friend: buddy pal mate roommate neighbor
pet animal: dog puppy pup cat kitten turtle tortoise hamster bird parrot fish rabbit horse snake lizard
dog: puppy pup
cat: kitten

food meal dish cuisine: eat ate cook bake breakfast lunch dinner supper dessert cake cookie pie bread soup
    salad sandwich pasta noodle pizza burger rice chicken beef meat fish seafood fruit vegetable cheese
    chocolate snack recipe restaurant
dessert: cake cookie pie chocolate candy pastry brownie pudding
drink beverage: coffee tea beer wine juice cocktail soda milk water smoothie
recipe: cook bake dish ingredient
restaurant: cafe diner dinner lunch eat bar
diet: eat vegan vegetarian dairy gluten sugar healthy

movie film: watch cinema actor director trilogy scene documentary
book novel: read author writer story series trilogy chapter fantasy library
writing: write wrote story poem poetry script screenplay novel blog journal article book
music song: band concert album sing singer guitar piano violin drum listen
musician artist: band singer song concert
instrument: guitar piano violin drum clarinet flute cello saxophone trumpet bass ukulele
game: play video tournament console level player board card chess
sport: basketball soccer football tennis baseball volleyball hockey golf swim run ski surf skate climb box
    team match coach
exercise workout fitness: gym run jog swim hike bike cycle yoga pilates stretch weight train marathon
art artwork: paint painting draw drawing sketch sculpture pottery clay canvas photograph exhibit gallery
craft: knit sew crochet pottery clay wood jewelry
hobby activity pastime leisure interest: paint draw pottery photography read write cook bake garden hike
    camp fish swim run bike climb ski surf dance sing guitar piano game chess movie travel museum yoga knit
    collect volunteer
outdoor nature: hike camp park beach lake mountain forest trail river garden picnic climb fish
plant garden: flower tree vegetable grow seed herb
photo picture: camera photograph

travel trip vacation journey: visit holiday fly flight hotel tour road explore abroad cruise beach camp
place location destination: city town country beach mountain park lake museum restaurant cafe island
country: abroad europe america asia africa italy france spain germany japan china india england canada
    mexico
city town: downtown york london paris
home house live: apartment flat room move neighbor neighborhood rent mortgage roommate
vehicle transport: car bike bicycle truck van motorcycle bus train drive
car: drive truck vehicle road
weather: rain snow sun storm wind cold hot

job work career occupation profession employment: company boss office colleague coworker business hire
    promote quit resign internship interview salary employ shift
business company: startup client customer store shop launch
education school study degree: class course college university student graduate exam major learn teacher
    tuition
class course lesson: workshop seminar learn teach enroll
money finance financial: pay paid cost price afford save budget debt loan salary donate
purchase buy: bought shop order store
gift present: give gave receive birthday
device technology gadget: phone computer laptop tablet camera app software
computer programming: code software program developer app laptop

health medical condition illness disease: doctor hospital sick ill injury injure hurt pain ache surgery
    medicine medication diagnose diagnosis therapy asthma diabetes flu fever blood
injury: hurt break broke sprain ankle knee accident
allergy allergic: intolerant reaction rash
clothes clothing outfit: shirt shoe dress jacket coat hat sneaker jeans sweater wear
jewelry: necklace ring bracelet earring pendant
color: red blue green yellow purple pink orange black white

event: party wedding birthday anniversary festival ceremony concert conference parade show fair meeting
    workshop gala fundraiser competition
celebration holiday: party birthday anniversary wedding festival christmas thanksgiving halloween easter
competition contest: tournament race win won prize award champion medal compete
award achievement accomplishment: win won prize trophy medal champion certificate proud
charity: donate donation fundraiser shelter homeless volunteer help community
religion religious spiritual faith: church god pray prayer bible temple mosque
politics political: vote election government rights protest activist campaign
personality trait character: kind caring thoughtful brave honest generous patient strong confident funny
    creative
emotion feeling mood: happy sad angry upset scared nervous anxious excited proud lonely stress frustrated
    relieved
"""


def read_forms(analyzer: Analyzer) -> Mapping[str, frozenset[str]]:
    """Return, by the term of each form that is no other word, the terms of the others."""
    forms: dict[str, frozenset[str]] = defaultdict(frozenset)
    for group in _FORMS.split(","):
        terms = frozenset(analyzer.words(group))
        for term in analyzer.words(_OTHER_WORD_TOO.sub("", group)):
            forms[term] |= terms - {term}
    return forms


def read_kinds(analyzer: Analyzer) -> Mapping[str, frozenset[str]]:
    """Return, by the term that names a kind, the terms of what belongs to it."""
    kinds: dict[str, frozenset[str]] = defaultdict(frozenset)
    for line in _KINDS.replace("\n    ", " ").splitlines():
        names, _, members = line.partition(":")
        terms = frozenset(analyzer.words(f"{names} {members}"))
        for name in analyzer.words(names):
            kinds[name] |= terms - {name}
    return kinds
