"""English cues."""

from __future__ import annotations

from ekphory.queries.cue import Cue
from ekphory.queries.query_class import QueryHints

_PAST = QueryHints(episodic=0.8)
_MAYBE_PAST = QueryHints(episodic=0.5)
_TASTE = QueryHints(semantic=0.9)
_HOW = QueryHints(procedural=0.9)
_SOLVING = "fix solve resolve repair configure install debug restore clean get make build set"
_SOLVED = ", ".join(
    f"how did {who} {verb}" for who in ("i", "we", "you") for verb in _SOLVING.split()
)

TEMPORAL_CUES: tuple[Cue, ...] = (
    Cue(
        signal="asks when it was",
        phrases="when did, when was, when were, when had, when have, how long ago, last time",
        intent="temporal",
        weight=2.0,
        hints=_PAST,
    ),
    Cue(
        signal="asks when",
        phrases="""
            when is, when are, when does, when do, when will, when should, when can, what time,
            which time, what day, which day, what date, which date, what month, which month,
            what year, which year, what week, which week, since when, until when, how long,
            how often, how many days, how many weeks, how many months, how many years,
            how many hours, how many minutes, date of, deadline, deadlines, due date, schedule,
            expire, expires, expiry
        """,
        intent="temporal",
        weight=1.5,
    ),
    Cue(
        signal="names a past time",
        phrases="""
            yesterday, last night, ago, the other day, earlier today, recently, lately,
            most recent, latest, newest, previously, earlier this, back in, so far this
        """,
        intent="temporal",
        weight=1.2,
        hints=_PAST,
    ),
    Cue(
        signal="names a time",
        phrases="""
            today, tonight, tomorrow, this morning, this afternoon, this evening, at noon,
            upcoming, christmas, new year, easter, thanksgiving, halloween
        """,
        intent="temporal",
        weight=1.1,
    ),
    Cue(
        signal="asks for an order",
        phrases="""
            in which order, in what order, which order, what order, the first time,
            the first thing, the last thing, timeline, chronology, how many times
        """,
        intent="temporal",
        weight=1.3,
        hints=_MAYBE_PAST,
    ),
)

PREFERENCE_CUES: tuple[Cue, ...] = (
    Cue(
        signal="asks for a preference",
        phrases="""
            prefer, prefers, preferred, preference, preferences, favourite, favourites, favorite,
            favorites, would rather, i'd rather, we'd rather, he'd rather, she'd rather,
            they'd rather, rather have, rather drink, rather eat
        """,
        intent="preference",
        weight=2.2,
        hints=QueryHints(semantic=1.0),
    ),
    Cue(
        signal="asks for likes",
        phrases="""
            fond of, keen on, can't stand, cannot stand, crazy about, a fan of, appreciate,
            appreciates, pet peeve, pet peeves, annoy, annoys, happy, loyal to, sick of
        """,
        intent="preference",
        weight=1.2,
        hints=_TASTE,
    ),
    Cue(
        signal="asks for an opinion",
        phrases="""
            opinion, opinions, think of, think about, thinks of, thinks about, feel about,
            feels about, view on, views on, taste in, tastes in, interested in, interests,
            passionate about, hobby, hobbies, stance on
        """,
        intent="preference",
        weight=1.6,
        hints=_TASTE,
    ),
    Cue(
        signal="asks for a habit",
        phrases="""
            my usual, his usual, her usual, usual order, do i usually, usually order,
            usually pick, usually choose, usually eat, usually drink, usually take, usually buy,
            morning person, night owl, take my coffee, take his coffee, take her coffee,
            take my tea, take his tea, take her tea
        """,
        intent="preference",
        weight=1.6,
        hints=_TASTE,
    ),
    Cue(
        signal="asks how to answer",
        phrases="""
            do i want, want from you, style of answers, what tone, which tone, tone should you,
            should you address me, should you call me, important to me, thing to me, things to me,
            most to me
        """,
        intent="preference",
        weight=1.2,
        hints=_TASTE,
    ),
)

PROCEDURAL_CUES: tuple[Cue, ...] = (
    Cue(
        signal="asks how to",
        phrases="""
            how do i, how do we, how do you, how do they, how does one, how to, how can i,
            how can we, how can one, how could i, how could we, how should i, how should we,
            how would i, how would we, how would you, how must, how shall, how am i supposed,
            how are we supposed, the way to, best way to, right way to, a way to, way we, ways to,
            explain how, show me how, remind me how, teach me
        """,
        intent="procedural",
        weight=2.0,
        hints=_HOW,
    ),
    Cue(
        signal="asks how it was solved",
        phrases=_SOLVED,
        intent="procedural",
        weight=2.0,
        hints=_HOW,
    ),
    Cue(
        signal="asks how it goes",
        phrases="how does",
        intent="procedural",
        weight=1.0,
        hints=QueryHints(procedural=0.6),
    ),
    Cue(
        signal="asks what to do",
        phrases="""
            what do i do, what do we do, what should i do, what should we do, what must i do,
            what must we do, what do i have to do, what do we have to do, what do i need to do,
            what to do, what needs to be done
        """,
        intent="procedural",
        weight=1.8,
        hints=_HOW,
    ),
    Cue(
        signal="names a procedure",
        phrases="""
            step, steps, step by step, procedure, procedures, process for, process of,
            instructions, instruction, guide, guidelines, tutorial, recipe, recipes, checklist,
            workflow, walk me through, runbook, playbook, howto, how tos, best practice,
            best practices, convention for, conventions for, our convention, our conventions,
            naming convention, naming conventions, troubleshoot, troubleshooting, workaround,
            trick for, trick to, protocol for, routine for, settings for
        """,
        intent="procedural",
        weight=1.4,
        hints=_HOW,
    ),
    Cue(
        signal="asks for a command",
        phrases="""
            which command, what command, command for, command to, commands for, commands to,
            which flag, what flag, which script, what script, which settings, what settings
        """,
        intent="procedural",
        weight=1.6,
        hints=_HOW,
    ),
)

COMPARISON_CUES: tuple[Cue, ...] = (
    Cue(
        signal="compares",
        phrases="""
            compare, compares, compared, comparing, comparison, comparisons, versus, vs,
            difference, differences, differ, differs, different from, distinguish, distinguishes,
            contrast, pros and cons, advantage, advantages, disadvantage, disadvantages, upsides,
            downsides, trade off, trade offs, tradeoff, tradeoffs, in common, similar, similarity,
            similarities, as opposed to, which of the two, of the two, of both, outperform
        """,
        intent="comparison",
        weight=2.2,
    ),
    Cue(
        signal="asks for sameness",
        phrases="the same, both, alike, each of them, as much as, as many as, equally",
        intent="comparison",
        weight=1.0,
    ),
    Cue(
        signal="sets two apart",
        phrases="came first, came out first, come first, come out first, changed between",
        intent="comparison",
        weight=1.4,
    ),
)

CHAIN_CUES: tuple[Cue, ...] = (
    Cue(
        signal="says steps",
        phrases="""
            based on who, based on what, based on which, based on where, then tell, then find,
            then say, and from there, and then what, that person, whoever
        """,
        intent="chain",
        weight=1.2,
    ),
)

# They say nothing, and keep a part of them from being read as something.
SET_PHRASES: tuple[Cue, ...] = (
    Cue(
        signal="set phrase",
        phrases="""
            happy birthday, happy hour, happy new year, how many steps, named after, look after,
            looks after, looked after, after all, ask after, one time password, time zone,
            time zones, full time, part time, real time, run time, day care, day job,
            would like to, at the same time
        """,
    ),
)

HINT_CUES: tuple[Cue, ...] = (
    Cue(
        signal="asks for the most important",
        phrases="""
            most important, matter most, matters most, mattered most, top priority,
            top priorities, highest priority, most critical, most crucial, most essential,
            most significant, most relevant, number one priority
        """,
        hints=QueryHints(importance=1.0),
    ),
    Cue(
        signal="asks for the important",
        phrases="""
            important, crucial, critical, essential, essentials, vital, must remember,
            must not forget, must i not forget, mustn't forget, never forget, don't forget,
            do not forget, should not forget, shouldn't forget, key point, key points,
            key takeaway, key takeaways, key decision, key decisions, key fact, key facts,
            key lesson, key lessons, key insight, key insights, key findings, main point,
            main points, main takeaway, main takeaways, main decision, main decisions,
            main lesson, main lessons, biggest lesson, urgent, priorities, highlights
        """,
        hints=QueryHints(importance=0.8),
    ),
    Cue(
        signal="asks what happened",
        phrases="""
            what happened, that happened, what has happened, what's happened, happened with,
            happened to, happened at, went wrong, what went on, how did it go, what took place
        """,
        hints=_PAST,
    ),
    Cue(
        signal="asks for a fact",
        phrases="""
            do you know about me, know about me, facts about, fact about, allergic, allergy,
            allergies, blood type, about myself, profile of, my name
        """,
        hints=QueryHints(semantic=0.8),
    ),
)

ENGLISH_CUES: tuple[Cue, ...] = (
    *TEMPORAL_CUES,
    *PREFERENCE_CUES,
    *PROCEDURAL_CUES,
    *COMPARISON_CUES,
    *CHAIN_CUES,
    *SET_PHRASES,
    *HINT_CUES,
)
