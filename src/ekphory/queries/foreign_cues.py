"""A few cues of German, French, Spanish, Chinese and Japanese.

What is said in another language, or in other words, is a `lookup`.
"""

from __future__ import annotations

from ekphory.queries.cue import Cue
from ekphory.queries.query_class import QueryHints

_PAST = QueryHints(episodic=0.8)
_TASTE = QueryHints(semantic=0.9)
_HOW = QueryHints(procedural=0.9)
_IMPORTANT = QueryHints(importance=0.9)

FOREIGN_CUES: tuple[Cue, ...] = (
    Cue(
        signal="asks when it was",
        phrases="""
            wann haben, wann hat, wann habe, wann war, wann waren, wann wurde, wann hatte,
            quand avons, quand ai, quand a, quand as, quand ont, quand était, cuándo fue,
            cuándo hice, cuándo compramos, cuándo hicimos, cuándo vi, cuándo vino
        """,
        intent="temporal",
        weight=2.0,
        hints=_PAST,
    ),
    Cue(
        signal="asks when",
        phrases="""
            wann, wie lange, seit wann, bis wann, wie oft, quand, depuis quand, combien de temps,
            à quelle heure, cuándo, desde cuándo, cuánto tiempo, a qué hora, 什么时候, 何时, 几点,
            多久, いつ, 何時, 何日, 何年
        """,
        intent="temporal",
        weight=1.6,
    ),
    Cue(
        signal="names a past time",
        phrases="""
            gestern, vorgestern, letzte, letzten, letzter, letztes, neulich, zuletzt, vorhin,
            fait hier, hier soir, avant hier, dernier, dernière, derniers, dernières, récemment,
            ayer, anteayer, pasado, pasada, anoche, última vez, hace poco, recientemente, 昨天,
            前天, 上周, 上个月, 去年, 上次, 最近, 刚才, 昨日, 一昨日, 先週, 先月, 前回, この前
        """,
        intent="temporal",
        weight=1.3,
        hints=_PAST,
    ),
    Cue(signal="asks of the past", phrases="ましたか, でしたか", hints=QueryHints(episodic=0.5)),
    Cue(
        signal="asks for a preference",
        phrases="""
            am liebsten, lieblingsessen, lieblingsfarbe, lieblingsfilm, lieblingsbuch,
            lieblingsmusik, lieblingsort, lieblingsgetränk, bevorzuge, bevorzugt, mag ich,
            magst du, mag er, mag sie, vorliebe, vorlieben, préféré, préférée, préférés,
            préférées, préfère, j'aime, aime, favorito, favorita, favoritos, favoritas, prefiero,
            prefiere, me gusta, le gusta, 喜欢, 偏好, 最爱, 好きな, 好き, お気に入り, 好み
        """,
        intent="preference",
        weight=2.2,
        hints=_TASTE,
    ),
    Cue(
        signal="asks how to",
        phrases="""
            wie kann, wie richte, wie mache, wie macht, wie installiere, wie muss, wie soll,
            wie geht, wie funktioniert, wie ändere, wie setze, anleitung, schritte, comment faire,
            comment puis, comment peut, comment on, comment je, comment dois, étapes, cómo puedo,
            cómo se, cómo hago, cómo puede, cómo debo, cómo hacer, pasos para, 如何, 怎样, 步骤,
            怎么做, 怎么用, 怎么办, 怎么设置, 怎么安装, 怎么重启, 怎么修, 怎么才能,
            方法, やり方, 手順, どうやって
        """,
        intent="procedural",
        weight=2.0,
        hints=_HOW,
    ),
    Cue(
        signal="compares",
        phrases="""
            unterschied, unterschiede, vergleich, vergleiche, besser als, im vergleich,
            différence, différences, comparer, mieux que, par rapport, diferencia, diferencias,
            comparar, mejor que, 区别, 差别, 不同, 比较, 相比, 違い, 比較, どちらが
        """,
        intent="comparison",
        weight=2.2,
    ),
    Cue(
        signal="asks for the important",
        phrases="""
            wichtig, wichtige, wichtigen, wichtigste, wichtigsten, important, importants,
            importante, importantes, plus important, más importante, 重要, 大切, 肝心
        """,
        hints=_IMPORTANT,
    ),
)
