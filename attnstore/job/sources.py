"""This file chooses where the maps of a recipe come from. The only place that reaches the model stack, late."""

from attnstore.job.premade import ArraysSource
from attnstore.job.recipe import Recipe
from attnstore.job.source import Source


def source_for(recipe: Recipe, device: str = "cpu") -> Source:
    """The source of a recipe's maps: ready-made arrays, or a model (which needs the extra `ingest`)."""
    if recipe.corpus.kind == "arrays":
        return ArraysSource(recipe)
    from attnstore.job.model_source import ModelSource

    return ModelSource(recipe, device)
