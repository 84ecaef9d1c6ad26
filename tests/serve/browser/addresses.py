"""This file lists the pages that the tests open, as addresses on a service of the stores `small` and `other`."""

PAGES = {
    "home": "/",
    "store": "/stores/small",
    "store-painted": "/stores/small?question=heads/distance",
    "questions": "/stores/small/questions",
    "question": "/stores/small/questions/heads/entropy",
    "question-table": "/stores/small/questions/relations/best",
    "question-refused": "/stores/small/questions/coref/best",
    "head": "/stores/small/heads/1/2",
    "relations": "/stores/small/relations",
    "relation": "/stores/small/relations/obj",
    "relation-wrong": "/stores/small/relations/obj?layer=1&head=2&direction=dep_to_head&correct=false",
    "examples": "/stores/small/examples",
    "examples-found": "/stores/small/examples?text=boat&page=1",
    "example": "/stores/small/examples/0?layer=1&head=2",
    "example-matrix": "/stores/small/examples/0?layer=1&head=2&level=token&view=matrix&specials=true",
    "example-words": "/stores/small/examples/0?layer=1&head=2&level=word&renormalise=true&word=5",
    "clusters": "/stores/small/clusters",
    "sql": "/stores/small/sql",
    "sql-asked": "/stores/small/sql?sql=select%20layer,%20count(*)%20as%20n%20from%20heads%20group%20by%20layer",
    "compare": "/compare",
    "compare-asked": "/compare?a=small&b=other&question=compare/heads",
}
"""By a name for its screenshots."""
