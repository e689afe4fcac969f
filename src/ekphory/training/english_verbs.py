"""Plain forms of English verbs, as far as turning statements into questions needs them."""

from __future__ import annotations

_IRREGULAR = dict(
    pair.split(":")
    for pair in """went:go had:have got:get made:make saw:see took:take came:come bought:buy did:do
    found:find gave:give told:tell felt:feel became:become left:leave put:put brought:bring
    began:begin kept:keep held:hold wrote:write stood:stand heard:hear let:let meant:mean set:set
    met:meet ran:run paid:pay sat:sit spoke:speak led:lead read:read grew:grow lost:lose fell:fall
    sent:send built:build understood:understand drew:draw broke:break spent:spend cut:cut rose:rise
    drove:drive wore:wear chose:choose ate:eat slept:sleep taught:teach thought:think caught:catch
    fought:fight won:win sold:sell sang:sing swam:swim rode:ride flew:fly forgot:forget woke:wake
    threw:throw drank:drink knew:know said:say hurt:hurt hit:hit quit:quit lit:light hid:hide
    bit:bite tore:tear stole:steal swore:swear froze:freeze shook:shake shot:shoot dealt:deal
    dreamt:dream learnt:learn burnt:burn hung:hang spread:spread beat:beat
    bet:bet""".split()
)
PARTICIPLES = frozenset(
    """been gone had got gotten made seen taken come bought done found given told felt become left
    put brought begun kept held written stood heard let meant set met run paid sat spoken led read
    grown lost fallen sent built understood drawn broken spent cut risen driven worn chosen eaten
    slept taught thought caught fought won sold sung swum ridden flown forgotten thrown drunk known
    said hurt hit quit""".split()
)
_NOT_PAST = frozenset("need feed speed bleed breed exceed proceed succeed shed embed wed".split())
_E_BEFORE_D = ("v", "c", "g", "s", "z", "u", "at", "ir", "ar", "ik", "ok", "ak", "op", "id", "ot")
_ENDS_ITSELF = ("eat", "oat", "eak", "ook", "ear", "oop", "eed", "oad", "eet", "ss", "air", "oor")
_KEEPS_DOUBLE = ("ll", "ss", "zz", "ff")


def plain_form_of_past(word: str) -> str | None:
    """Give the plain form of a past tense; None where the word is not one.

    >>> plain_form_of_past("went"), plain_form_of_past("hiked"), plain_form_of_past("beach")
    ('go', 'hike', None)
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if not word.endswith("ed") or len(word) < 4 or word in _NOT_PAST:
        return None
    stem = word[:-2]
    if stem.endswith("i"):
        return stem[:-1] + "y"
    if stem.endswith(_ENDS_ITSELF):
        return stem
    if len(stem) > 2 and stem[-1] == stem[-2] and not stem.endswith(_KEEPS_DOUBLE):
        return stem[:-1]
    return stem + "e" if stem.endswith(_E_BEFORE_D) or len(stem) < 3 else stem


def plain_form_of_third_person(word: str) -> str | None:
    """Give the plain form of a verb after he, she or it; None where the word is not one.

    >>> plain_form_of_third_person("teaches"), plain_form_of_third_person("has")
    ('teach', 'have')
    """
    special = {"has": "have", "does": "do", "goes": "go"}
    if word in special:
        return special[word]
    if not word.endswith("s") or word.endswith(("ss", "us", "is")) or len(word) < 4:
        return None
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "sses", "xes", "zes")):
        return word[:-2]
    return word[:-1]
