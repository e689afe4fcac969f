"""First names for the speakers of training conversations; none is a speaker of a benchmark."""

from __future__ import annotations

from random import Random

FIRST_NAMES = tuple(
    """Abigail Adele Agnes Albert Alejandro Alfred Alice Amara Amir Anders Angela Anita Anton
    Arthur Astrid Aurora Beatrice Benedict Bernard Bianca Bjorn Bridget Bruno Camila Carlos Cecilia
    Celeste Cedric Chidi Clara Claude Colin Cora Curtis Cyrus Daphne Darius Delia Desmond Diego
    Dominic Dora Edgar Edith Eduardo Eleanor Elias Eloise Emil Enzo Erica Esther Eugene Fabian
    Farah Felix Fergus Fiona Florence Frances Frida Gareth Gemma Georgia Gideon Gilbert Giulia
    Gloria Greta Gustav Hamza Harriet Harvey Hazel Hector Heidi Henrik Hilda Hugo Ibrahim Imogen
    Ines Ingrid Iris Isaac Isla Ivan Ivy Jasper Javier Jerome Joel Josephine Judith Julius Kamal
    Karim Katya Keiko Kenji Kira Klaus Lars Laila Leah Leo Leonora Lionel Lorna Lucas Lucia Luther
    Lydia Mabel Magnus Malik Marcel Marco Margot Marina Martha Matilda Maurice Mei Mila Miles
    Miriam Nadia Naomi Nigel Nina Noor Norman Odette Olga Oliver Oscar Otto Owen Pablo Patricia
    Penelope Percy Petra Philippa Phoebe Priya Quentin Rachel Rafael Ramona Raymond Renata Rhys
    Rosa Rufus Ruth Sadie Salma Samir Sandra Selma Serena Sidney Silas Simone Sofia Stella Sven
    Sylvia Tamara Tariq Tessa Theodore Thomas Tobias Ursula Valerie Victor Vincent Viola Walter
    Wanda Wesley Wilfred Winifred Yara Yasmin Yusuf Zara Zelda Zoe""".split()
)

POSSESSIVES = ("his", "her", "their")


def two_names(random: Random) -> tuple[str, str]:
    """Draw two different names."""
    first, second = random.sample(FIRST_NAMES, 2)
    return first, second
