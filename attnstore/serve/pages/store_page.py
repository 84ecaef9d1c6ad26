"""This file is the page of one store: what it is, the grid that a question paints, and the top of its relations."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from attnstore.serve.api import service_of
from attnstore.serve.pages.asked import ask, kind_of, kind_params, those_soon
from attnstore.serve.pages.painted import choices, painted
from attnstore.serve.pages.relation_rows import largest_gains
from attnstore.serve.pages.render import counted, render
from attnstore.serve.published import Published

router = APIRouter()


@router.get("/stores/{store}")
async def store_page(request: Request, store: str, question: str | None = None, kind: str | None = None) -> Response:
    """The store, its heads as `question` paints them, and the relations that its heads know best."""
    service = service_of(request)
    found = service.store(store)
    chosen = kind_of(found, kind)
    grid = await painted(service, found, question or None, chosen)
    best = (await those_soon({"best": ask(service, [found], "relations/best", kind_params(chosen))}))["best"]
    return render(
        request,
        "store.html",
        store=found,
        facts=facts(found),
        painted=grid,
        choices=await choices(service, found),
        kinds=found.store.kinds,
        pairs=[(one, one) for one in found.store.kinds],
        kind=chosen,
        best=best,
        top=largest_gains(best.rows if best else []),
    )


def facts(store: Published) -> list[tuple[str, str]]:
    """What a store is, in words for its page."""
    about, info = store.about(), store.store.info
    shapes = [(kind, info.kinds[kind]) for kind in store.store.kinds]
    sizes = [f"{kind} {shape.layers} x {shape.heads}" for kind, shape in shapes]
    size = ", ".join(sizes) if len(sizes) > 1 else sizes[0].partition(" ")[2]
    done, _, planned = about["examples"].partition(" of ")
    examples = counted(int(done)) if done == planned else f"{counted(int(done))} of {counted(int(planned))}"
    given = [
        ("Model", about["model"]),
        ("Layers x heads", size),
        ("Examples", examples),
        ("Precision", info.precision),
        ("Maps kept", f"the {info.kept.topk} largest of each row" if info.kept.topk else info.kept.maps),
        ("Size", about["size"].partition(" in ")[0]),
        ("Licence", str(about["licence"] or "not said")),
        ("Snapshot", f"{about['snapshot']} · {store.key[:8]}"),
    ]
    return given + ([("Evidence", ", ".join(about["evidence"]).replace("_", " "))] if about["evidence"] else [])
