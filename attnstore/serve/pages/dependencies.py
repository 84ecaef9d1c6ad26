"""This file says relations of Universal Dependencies in plain words, for readers who do not know the labels."""

RELATIONS = {
    "acl": "clause that describes a noun",
    "advcl": "adverbial clause",
    "advmod": "adverb",
    "amod": "adjective of a noun",
    "appos": "apposition",
    "aux": "auxiliary verb",
    "case": "preposition or case marker",
    "cc": "coordinating conjunction",
    "ccomp": "clause as object",
    "clf": "classifier",
    "compound": "compound word",
    "conj": "joined by and, or",
    "cop": "copula (be)",
    "csubj": "clause as subject",
    "dep": "unspecified dependency",
    "det": "determiner",
    "discourse": "discourse element",
    "dislocated": "dislocated element",
    "dobj": "direct object",
    "expl": "expletive (there, it)",
    "fixed": "fixed expression",
    "flat": "name or flat expression",
    "goeswith": "wrongly split word",
    "iobj": "indirect object",
    "list": "item of a list",
    "mark": "marker of a clause (that, to)",
    "neg": "negation",
    "nmod": "noun that modifies a noun",
    "nsubj": "subject",
    "nummod": "number of a noun",
    "obj": "direct object",
    "obl": "oblique noun (of time, place …)",
    "orphan": "orphan of an ellipsis",
    "parataxis": "parataxis",
    "pobj": "object of a preposition",
    "poss": "possessor",
    "prep": "preposition",
    "punct": "punctuation",
    "reparandum": "repaired speech",
    "root": "root of the sentence",
    "vocative": "vocative",
    "xcomp": "clause with the subject of its governor",
}

SUBTYPES = {
    "pass": "passive",
    "poss": "possessive",
    "prt": "particle of a verb",
    "relcl": "relative clause",
    "tmod": "of time",
    "npmod": "noun phrase",
    "unmarked": "unmarked",
    "agent": "agent",
    "arg": "argument",
    "lmod": "of place",
    "foreign": "foreign",
    "outer": "outer clause",
    "predet": "before the determiner",
    "preconj": "first of a pair, as in both … and",
    "attr": "attributive",
    "desc": "descriptive",
    "adv": "adverbial",
}

DIRECTIONS = {
    "dep_to_head": "dependent → governor",
    "head_to_dep": "governor → dependent",
    "head_row": "governor → dependent, of its own row",
}
"""Who looks at whom, for the directions of relations/accuracy."""

ASKED = {
    "dep_to_head": "Of all other words, the dependent attends most to its governor.",
    "head_to_dep": "Of all other words, the governor attends most to the dependent.",
    "head_row": "The governor attends to the dependent more than to any other word.",
}
"""When a head counts as right, for each direction."""


def plain(relation: str) -> str:
    """The relation in plain words; its label where it is not known, "every relation" for `all`."""
    if relation == "all":
        return "every relation"
    base, _, subtype = relation.partition(":")
    if base not in RELATIONS:
        return relation
    more = f", {SUBTYPES.get(subtype, subtype)}" if subtype else ""
    return RELATIONS[base] + more


def offset_words(offset: int) -> str:
    """A fixed offset in words: what it always guesses."""
    if offset == 0:
        return "the word itself"
    far = "next" if offset == 1 else "previous" if offset == -1 else ""
    return f"the {far} word" if far else f"the word {abs(offset)} places {'after' if offset > 0 else 'before'}"
