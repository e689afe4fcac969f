"""A sentence in each of forty languages, for tests of what reads text."""

from __future__ import annotations

from collections.abc import Mapping

FORTY_LANGUAGES: Mapping[str, str] = {
    "am": "ጀልባው ወደብ ውስጥ ነው።",
    "ar": "القارب في الميناء.",
    "bg": "Лодката е в пристанището.",
    "bn": "নৌকাটি বন্দরে আছে।",
    "cs": "Loď je v přístavu.",
    "da": "Båden ligger i havnen.",
    "de": "Das Boot liegt im Hafen.",
    "el": "Η βάρκα είναι στο λιμάνι.",
    "en": "The boat is in the harbour.",
    "es": "El barco está en el puerto.",
    "et": "Paat on sadamas.",
    "fa": "قایق در بندر است.",
    "fi": "Vene on satamassa.",
    "fr": "Le bateau est dans le port.",
    "ga": "Tá an bád sa chuan.",
    "he": "הסירה בנמל.",
    "hi": "नाव बंदरगाह में है।",
    "hr": "Brod je u luci.",
    "hu": "A hajó a kikötőben van.",
    "hy": "Նավակը նավահանգստում է։",
    "id": "Perahu itu ada di pelabuhan.",
    "is": "Báturinn er í höfninni.",
    "it": "La barca è nel porto.",
    "ja": "船は港にあります。",
    "ka": "ნავი ნავსადგურშია.",
    "km": "ទូកនៅក្នុងកំពង់ផែ។",
    "ko": "배는 항구에 있다.",
    "lt": "Laivas yra uoste.",
    "nl": "De boot ligt in de haven.",
    "pl": "Łódź jest w porcie.",
    "pt": "O barco está no porto.",
    "ro": "Barca este în port.",
    "ru": "Лодка стоит в гавани.",
    "sw": "Mashua iko bandarini.",
    "ta": "படகு துறைமுகத்தில் உள்ளது.",
    "th": "เรืออยู่ในท่าเรือ",
    "tr": "Tekne limanda.",
    "uk": "Човен стоїть у гавані.",
    "vi": "Chiếc thuyền ở trong cảng.",
    "zh": "船在港口里。",
}
"""By the language's code."""
